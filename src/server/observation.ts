import type { Registry } from "../capabilities/registry.ts";
import type { Config } from "../config/schema.ts";
import type { CallObserver } from "../pipeline/call-observer.ts";
import type { RequestWatch } from "../protocol/request-watch.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import { createRedactor } from "../telemetry/redact.ts";
import { CallLog } from "./call-log.ts";
import { CallMetrics, RequestMetrics } from "./call-metrics.ts";
import { RequestLog } from "./request-log.ts";

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
  /** For operators who want to know where the time of a call went. */
  readonly stages: CallObserver;
}

export function openObservation({ config, logger, registry, metrics, stages }: ObservationParts): Observation {
  const redactor = createRedactor(config.ledger.redact);
  const callLog = new CallLog(logger, redactor);
  const requestLog = new RequestLog(logger, redactor);
  if (metrics === undefined) return { calls: both(stages, callLog), requests: requestLog };
  const callMetrics = new CallMetrics(metrics, (name) => registry.tool(name) !== undefined);
  const requestMetrics = new RequestMetrics(metrics);
  return {
    calls: both(both(stages, callMetrics), callLog),
    requests: {
      begin(request, origin) {
        const count = requestMetrics.begin(request, origin);
        const log = requestLog.begin(request, origin);
        return (answer) => {
          count(answer);
          log(answer);
        };
      },
    },
  };
}

function both(first: CallObserver, second: CallObserver): CallObserver {
  return {
    finished(call) {
      first.finished(call);
      second.finished(call);
    },
  };
}
