import type { Config } from "../config/schema.ts";
import type { CallObserver } from "../pipeline/call-observer.ts";
import type { RequestWatch } from "../protocol/request-watch.ts";
import type { Logger } from "../telemetry/logger.ts";
import { createRedactor } from "../telemetry/redact.ts";
import { CallLog } from "./call-log.ts";
import { RequestLog } from "./request-log.ts";

/** Whoever hears of calls and requests. */
export interface Observation {
  readonly calls: CallObserver;
  readonly requests: RequestWatch;
}

export function openObservation({ ledger }: Config, logger: Logger): Observation {
  const redactor = createRedactor(ledger.redact);
  return { calls: new CallLog(logger, redactor), requests: new RequestLog(logger, redactor) };
}
