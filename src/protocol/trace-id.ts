import { randomUUID } from "node:crypto";

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/;
const ALL_ZERO = "0".repeat(32);

export function newTraceId(): string {
  return randomUUID().replaceAll("-", "");
}

/** The trace that the caller is in, by W3C Trace Context, or a new one. */
export function traceIdFrom(traceparent: unknown): string {
  const id = typeof traceparent === "string" ? TRACEPARENT.exec(traceparent)?.[1] : undefined;
  return id === undefined || id === ALL_ZERO ? newTraceId() : id;
}
