import { toBoundedJson } from "../ledger/bounded-json.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../protocol/json-rpc.ts";
import type { OnAnswer, RequestOrigin, RequestWatch } from "../protocol/request-watch.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Redactor } from "../telemetry/redact.ts";
import { LOG_BOUNDS } from "./call-log.ts";

/** Calls have a line of their own, which says more than the request that carried them. */
const GOVERNED: ReadonlySet<string> = new Set(["tools/call", "resources/read", "prompts/get", "completion/complete"]);
const MAX_METHOD_CHARS = 64;

/** Every request and its answer at the level `debug`, and at `warning` those that were refused before they became a call. */
export class RequestLog implements RequestWatch {
  readonly #logger: Logger;
  readonly #redactor: Redactor;

  constructor(logger: Logger, redactor: Redactor) {
    this.#logger = logger;
    this.#redactor = redactor;
  }

  begin(request: JsonRpcRequest, origin: RequestOrigin): OnAnswer {
    const isWhole = this.#logger.shows("debug");
    if (isWhole) this.#logger.debug("request", { ...facts(request, origin), params: this.#bounded(request.params) });
    const startMs = performance.now();
    return (answer) => this.#answered(answer, { request, origin, startMs });
  }

  #answered(
    answer: JsonRpcResponse | undefined,
    asked: { readonly request: JsonRpcRequest; readonly origin: RequestOrigin; readonly startMs: number },
  ): void {
    const { request, origin, startMs } = asked;
    const isError = answer !== undefined && "error" in answer;
    if (isError && !GOVERNED.has(request.method)) {
      const { code, message, data } = answer.error;
      const kind = typeof data === "object" && data !== null && "kind" in data ? data.kind : undefined;
      this.#logger.warning("request refused", { ...facts(request, origin), code, kind, reason: message });
    }
    if (!this.#logger.shows("debug")) return;
    this.#logger.debug("answer", {
      ...facts(request, origin),
      duration_ms: Math.round((performance.now() - startMs) * 1000) / 1000,
      outcome: answer === undefined ? "none" : isError ? "error" : "ok",
      ...(answer !== undefined && { answer: this.#bounded(isError ? answer.error : answer.result) }),
    });
  }

  #bounded(value: unknown): unknown {
    return JSON.parse(toBoundedJson(value, this.#redactor, LOG_BOUNDS));
  }
}

function facts({ id, method }: JsonRpcRequest, { caller, traceId }: RequestOrigin): Record<string, unknown> {
  const { principal, label, transport, protocolVersion } = caller;
  return {
    method: method.slice(0, MAX_METHOD_CHARS),
    request_id: id,
    trace_id: traceId,
    principal: principal.id,
    ...(label !== undefined && { label }),
    transport,
    revision: protocolVersion,
  };
}
