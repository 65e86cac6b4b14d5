import type { LedgerEntry } from "../governance/ledger/ledger.ts";
import type { CallObserver, FinishedCall } from "../call/governed-work.ts";
import type { JsonRpcRequest } from "./json-rpc.ts";
import type { EndedSession, OnAnswer, RequestOrigin, RequestWatch } from "./request-observer.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import { answerErrorType, knownMethod, knownVersion, networkTransport, UNKNOWN } from "./request-tracer.ts";

const MICROS = 1_000_000;

/** Errors of calls to tools that may not exist. Callers invent such names, so they share one label. */
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

  ranOn({ costMicros }: LedgerEntry): void {
    if (costMicros > 0) this.#metrics.cost.add([], costMicros / MICROS);
  }

  #toolOf(name: string, errorKind: string | undefined): string {
    const isDoubtful = errorKind !== undefined && NO_SUCH_TOOL.has(errorKind);
    return isDoubtful && !this.#isTool(name) ? UNKNOWN : name;
  }
}

/** Follows OpenTelemetry's conventions for MCP servers. */
export class RequestMetrics implements RequestWatch {
  readonly #metrics: Metrics;
  readonly #isTool: (name: string) => boolean;

  constructor(metrics: Metrics, isTool: (name: string) => boolean) {
    this.#metrics = metrics;
    this.#isTool = isTool;
  }

  begin({ method, params }: JsonRpcRequest, { caller }: RequestOrigin): OnAnswer {
    const startMs = performance.now();
    const tool = method === "tools/call" ? this.#toolOf(params?.["name"]) : "";
    return (answer) => {
      this.#metrics.requests.observe(
        [
          knownMethod(method),
          tool,
          knownVersion(caller.protocolVersion),
          networkTransport(caller.transport),
          answerErrorType(answer),
        ],
        (performance.now() - startMs) / 1000,
      );
    };
  }

  sessionEnded({ caller, version, durationMs }: EndedSession): void {
    const labels = [knownVersion(version), networkTransport(caller.transport)];
    this.#metrics.sessionSeconds.observe(labels, durationMs / 1000);
  }

  #toolOf(name: unknown): string {
    return typeof name === "string" && this.#isTool(name) ? name : UNKNOWN;
  }
}
