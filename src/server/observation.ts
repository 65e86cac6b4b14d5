import type { Registry } from "../capability/registry.ts";
import type { Config } from "../config/schema.ts";
import type { Governor } from "../governance/governor.ts";
import type { CallObserver } from "../call/call-observer.ts";
import type { RequestWatch } from "../mcp/request-watch.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import { createRedactor } from "../telemetry/redact.ts";
import { BudgetMetrics } from "./budget-metrics.ts";
import { CallLog } from "./call-log.ts";
import { CallMetrics, RequestMetrics } from "./call-metrics.ts";
import { RequestLog } from "./request-log.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";

/** Whoever hears of calls and requests. */
export interface Observation {
  readonly calls: CallObserver;
  readonly requests: RequestWatch;
}

export interface ObservationParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly metrics: Metrics | undefined;
  readonly governance: { readonly governor: Pick<Governor, "usage"> } | undefined;
  /** For operators who want to know where the time of a call went. */
  readonly stages: CallObserver;
  readonly sandboxes?: SandboxPart | undefined;
}

export function openObservation({
  config,
  logger,
  registry,
  metrics,
  governance,
  stages,
  sandboxes,
}: ObservationParts): Observation {
  const redactor = createRedactor(config.ledger.redact);
  const callLog = new CallLog(logger, redactor);
  const openIds = (): string[] => sandboxes?.layer.services.sandboxes.listAll().map(({ id }) => id) ?? [];
  const requestLog = new RequestLog(logger, redactor, openIds);
  if (metrics === undefined) return { calls: all([stages, callLog], logger), requests: requestLog };
  const isTool = (name: string): boolean => registry.tool(name) !== undefined;
  const callMetrics = new CallMetrics(metrics, isTool);
  const budgets = governance === undefined ? [] : [new BudgetMetrics(metrics, governance.governor)];
  const requestMetrics = new RequestMetrics(metrics, isTool);
  return {
    calls: all([stages, callMetrics, ...budgets, callLog], logger),
    requests: {
      begin(request, origin) {
        const count = requestMetrics.begin(request, origin);
        const log = requestLog.begin(request, origin);
        return (answer) => {
          count(answer);
          log(answer);
        };
      },
      sessionEnded: (session) => requestMetrics.sessionEnded(session),
    },
  };
}

/** The call is over and recorded: who cannot hear of it must not take its answer, nor the others' news, away. */
function all(observers: readonly CallObserver[], logger: Logger): CallObserver {
  return {
    finished(call) {
      for (const observer of observers) {
        try {
          observer.finished(call);
        } catch (error) {
          logger.error("a call could not be counted or logged", { trace_id: call.entry.traceId, error });
        }
      }
    },
    ranOn(entry, call) {
      for (const observer of observers) observer.ranOn?.(entry, call);
    },
  };
}
