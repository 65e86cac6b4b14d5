import type { Caller } from "../call/call.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "./json-rpc.ts";
import { randomUUID } from "node:crypto";
import { readTraceparent, traceContextIn } from "../telemetry/tracing/trace-context.ts";

export interface RequestOrigin {
  readonly caller: Caller;
  readonly traceId: string;
}

/** Receives the answer; `undefined` when the client cancelled, or gets it in pieces over a stream. */
export type OnAnswer = (answer: JsonRpcResponse | undefined) => void;

/** A session that began with a handshake and has ended, at least on this server. */
export interface EndedSession {
  readonly caller: Caller;
  /** The revision that the handshake negotiated. */
  readonly version: string;
  readonly durationMs: number;
}

/** Observes every request and its answer, for the log and the metrics. It must neither throw nor wait. */
export interface RequestWatch {
  begin(request: JsonRpcRequest, origin: RequestOrigin): OnAnswer;
  sessionEnded?(session: EndedSession): void;
}

type Answer = JsonRpcResponse | undefined;

/** Adds requests to traces. Absent when tracing is off. */
export interface RequestTracing {
  /** A message arrived; its carrier, such as its headers, may name the trace that it belongs to. */
  arrived<T>(carrier: unknown, serve: () => T): T;
  /** The caller of the message is authenticated. */
  identified(): void;
  /** Serves one request of the message. */
  serve(request: JsonRpcRequest, origin: RequestOrigin, serve: () => Promise<Answer>): Promise<Answer>;
}

export function newTraceId(): string {
  return randomUUID().replaceAll("-", "");
}

/**
 * The trace that a request names in its `_meta`, as MCP clients do on every transport. It takes precedence over the
 * headers of the connection.
 */
export function traceIdIn(params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  return traceContextIn(params)?.traceId;
}

/** The trace that the caller is in, by W3C Trace Context, or a new one. */
export function traceIdFrom(traceparent: unknown): string {
  return readTraceparent(traceparent)?.traceId ?? newTraceId();
}
