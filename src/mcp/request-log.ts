import { toBoundedJson } from "../governance/ledger/bounded-json.ts";
import type { JsonRpcRequest, JsonRpcResponse, WireErrorBody } from "./json-rpc.ts";
import { sandboxFacts } from "../call/ledger-facts.ts";
import type { OnAnswer, RequestOrigin, RequestWatch } from "./request-observer.ts";
import { type Redactor, hiding, withoutTexts } from "../telemetry/redact.ts";
import type { Logger } from "../telemetry/logger.ts";
import { LOG_BOUNDS } from "../call/call-log.ts";

/** Calls have separate log lines, which say more than their requests. */
const GOVERNED: ReadonlySet<string> = new Set(["tools/call", "resources/read", "prompts/get", "completion/complete"]);
const MAX_METHOD_CHARS = 64;

/**
 * Logs every request and its answer at the level `debug`, and at `warning` the requests that were refused before they
 * became a call.
 */
export class RequestLog implements RequestWatch {
  readonly #logger: Logger;
  readonly #redactor: Redactor;
  readonly #openIds: () => readonly string[];

  /** @param openIds The ids of live sandboxes: which one a call without an id uses is known only from its answer. */
  constructor(logger: Logger, redactor: Redactor, openIds: () => readonly string[]) {
    this.#logger = logger;
    this.#redactor = redactor;
    this.#openIds = openIds;
  }

  begin(request: JsonRpcRequest, origin: RequestOrigin): OnAnswer {
    if (this.#logger.shows("debug")) {
      const params = this.#bounded(request.params, secretsOf(request));
      this.#logger.debug("request", { ...facts(request, origin), params });
    }
    const startMs = performance.now();
    return (answer) => this.#answered(answer, { request, origin, startMs });
  }

  #answered(
    answer: JsonRpcResponse | undefined,
    asked: { readonly request: JsonRpcRequest; readonly origin: RequestOrigin; readonly startMs: number },
  ): void {
    const { request, origin, startMs } = asked;
    const isError = answer !== undefined && "error" in answer;
    if (isError && !GOVERNED.has(request.method))
      this.#logger.warning("request refused", { ...facts(request, origin), ...refusal(request, answer.error) });
    if (!this.#logger.shows("debug")) return;
    const said = answer !== undefined && (isError ? answer.error : answer.result);
    this.#logger.debug("answer", {
      ...facts(request, origin),
      duration_ms: Math.round((performance.now() - startMs) * 1000) / 1000,
      outcome: answer === undefined ? "none" : isError ? "error" : "ok",
      ...(answer !== undefined && { answer: this.#bounded(said, secretsOf(request, said)) }),
    });
  }

  #bounded(value: unknown, secrets: readonly string[]): unknown {
    return JSON.parse(toBoundedJson(value, hiding(this.#redactor, [...secrets, ...this.#openIds()]), LOG_BOUNDS));
  }
}

function refusal(request: JsonRpcRequest, { code, message, data }: WireErrorBody): Record<string, unknown> {
  const kind = typeof data === "object" && data !== null && "kind" in data ? data.kind : undefined;
  return { code, kind, reason: withoutTexts(message, secretsOf(request)) };
}

/** What the ledger redacts in the same call: the id of its sandbox, which gives access to it, wherever it occurs. */
function secretsOf({ params }: JsonRpcRequest, answer?: unknown): readonly string[] {
  const asked = sandboxFacts(params?.["arguments"] ?? params, undefined).secrets ?? [];
  return [...asked, ...(sandboxFacts(undefined, answer).secrets ?? [])];
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
