import type { Registry } from "../capability/registry.ts";
import type { Config } from "../config/schema.ts";
import type { Governor } from "../governance/governor.ts";
import type { CallObserver } from "../call/governed-work.ts";
import type { RequestWatch, RequestTracing } from "../mcp/request-observer.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import { createRedactor } from "../telemetry/redact.ts";
import { BudgetMetrics } from "../call/budget-metrics.ts";
import { CallLog } from "../call/call-log.ts";
import { CallMetrics, RequestMetrics } from "../mcp/call-metrics.ts";
import { RequestLog } from "../mcp/request-log.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";
import { randomUUID } from "node:crypto";
import { OtlpExporter } from "../telemetry/tracing/otlp-exporter.ts";
import { Tracer } from "../telemetry/tracing/tracer.ts";
import { PACKAGE_VERSION } from "../config/package-version.ts";
import { RequestTracer } from "../mcp/request-tracer.ts";

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

export interface OpenTracing {
  readonly tracer: Tracer;
  readonly requests: RequestTracing;
  /** Sends what waits. */
  close(): Promise<void>;
}

export interface TracingParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly metrics: Metrics | undefined;
}

/** Loaded by servers that trace, and by no others. */
export function openTracing({ config, logger, registry, metrics }: TracingParts): OpenTracing {
  const { endpoint, headers, serviceName, sampleRatio } = config.telemetry.otlp;
  const exporter = new OtlpExporter({
    url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
    headers,
    source: { serviceName, version: PACKAGE_VERSION, instanceId: randomUUID() },
    logger,
    onSpans: (outcome, count) => metrics?.traceSpans.add([outcome], count),
  });
  const tracer = new Tracer({ sink: exporter.add, sampleRatio });
  const requests = new RequestTracer(tracer, {
    isTool: (name) => registry.tool(name) !== undefined,
    isPrompt: (name) => registry.prompt(name) !== undefined,
  });
  return { tracer, requests, close: () => exporter.close() };
}
