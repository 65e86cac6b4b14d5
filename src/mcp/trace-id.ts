import { randomUUID } from "node:crypto";
import { readTraceparent, traceContextIn } from "../telemetry/tracing/trace-context.ts";

export function newTraceId(): string {
  return randomUUID().replaceAll("-", "");
}

/**
 * The trace that a request names in its own `_meta`, as MCP clients do on every transport. It stands nearer to the request than the
 * headers of the connection that carries it.
 */
export function traceIdIn(params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  return traceContextIn(params)?.traceId;
}

/** The trace that the caller is in, by W3C Trace Context, or a new one. */
export function traceIdFrom(traceparent: unknown): string {
  return readTraceparent(traceparent)?.traceId ?? newTraceId();
}
