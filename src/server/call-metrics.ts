import type { CallObserver, FinishedCall } from "../pipeline/call-observer.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../protocol/json-rpc.ts";
import type { OnAnswer, RequestOrigin, RequestWatch } from "../protocol/request-watch.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";

const MICROS = 1_000_000;
const UNKNOWN = "unknown";

/** Names of tools that do not exist are their callers' invention: they share one label. */
const NO_SUCH_TOOL: ReadonlySet<string> = new Set(["tool_not_found", "governance_denied"]);

export class CallMetrics implements CallObserver {
  readonly #metrics: Metrics;
  readonly #isTool: (name: string) => boolean;

  constructor(metrics: Metrics, isTool: (name: string) => boolean) {
    this.#metrics = metrics;
    this.#isTool = isTool;
  }

  finished({ entry, egressBytes, ledgerMs }: FinishedCall): void {
    const { calls, callSeconds, errors, refusals, cost, egress, ledgerSeconds } = this.#metrics;
    const { kind, outcome, errorKind } = entry;
    const tool = kind === "tool" ? this.#toolOf(entry.name, errorKind) : "";
    calls.add([kind, tool, outcome], 1);
    if (kind === "tool" && outcome !== "refused") callSeconds.observe([tool], entry.durationMs / 1000);
    if (errorKind !== undefined) errors.add([errorKind], 1);
    if (outcome === "refused") refusals.add([entry.rule], 1);
    if (entry.costMicros > 0) cost.add([], entry.costMicros / MICROS);
    if (egressBytes > 0) egress.add([], egressBytes);
    ledgerSeconds.observe([], ledgerMs / 1000);
  }

  #toolOf(name: string, errorKind: string | undefined): string {
    const isDoubtful = errorKind !== undefined && NO_SUCH_TOOL.has(errorKind);
    return isDoubtful && !this.#isTool(name) ? UNKNOWN : name;
  }
}

/** The methods of the protocol, and our own; whatever else comes shares one label. */
const METHODS: ReadonlySet<string> = new Set(
  [
    ["initialize", "ping", "server/discover", "mcp.capabilities", "logging/setLevel", "completion/complete"],
    ["tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"],
    ["resources/subscribe", "resources/unsubscribe", "subscriptions/listen", "resources/directory/read"],
    ["prompts/list", "prompts/get", "tasks/get", "tasks/update", "tasks/cancel"],
  ].flat(),
);

export class RequestMetrics implements RequestWatch {
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  begin({ method }: JsonRpcRequest, { caller }: RequestOrigin): OnAnswer {
    const startMs = performance.now();
    return (answer) => {
      this.#metrics.requests.observe(
        [knownMethod(method), caller.transport, answerErrorType(answer)],
        (performance.now() - startMs) / 1000,
      );
    };
  }
}

/** The method, if it is one that exists. */
export function knownMethod(method: string): string {
  return METHODS.has(method) ? method : UNKNOWN;
}

/** Empty when all went well. */
export function answerErrorType(answer: JsonRpcResponse | undefined): string {
  if (answer === undefined) return "";
  if ("result" in answer) return answer.result["isError"] === true ? "tool_error" : "";
  const { data } = answer.error;
  const kind = typeof data === "object" && data !== null && "kind" in data ? data.kind : undefined;
  return typeof kind === "string" ? kind : UNKNOWN;
}
