import { randomUUID } from "node:crypto";

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/;
const ALL_ZERO = "0".repeat(32);

export function newTraceId(): string {
  return randomUUID().replaceAll("-", "");
}

/**
 * The trace that a request names in its own `_meta`, as MCP clients do on every transport. It stands nearer to the request than the
 * headers of the connection that carries it.
 */
export function traceIdIn(params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const meta = params?.["_meta"];
  if (typeof meta !== "object" || meta === null || !("traceparent" in meta)) return undefined;
  return knownTraceId(meta.traceparent);
}

/** The trace that the caller is in, by W3C Trace Context, or a new one. */
export function traceIdFrom(traceparent: unknown): string {
  return knownTraceId(traceparent) ?? newTraceId();
}

function knownTraceId(traceparent: unknown): string | undefined {
  const id = typeof traceparent === "string" ? TRACEPARENT.exec(traceparent)?.[1] : undefined;
  return id === ALL_ZERO ? undefined : id;
}
