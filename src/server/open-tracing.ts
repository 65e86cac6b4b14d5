import { randomUUID } from "node:crypto";
import type { Registry } from "../capability/registry.ts";
import type { Config } from "../config/schema.ts";
import type { RequestTracing } from "../mcp/request-tracing.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import { OtlpExporter } from "../telemetry/tracing/otlp-exporter.ts";
import { Tracer } from "../telemetry/tracing/tracer.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import { RequestTracer } from "./request-tracer.ts";

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
