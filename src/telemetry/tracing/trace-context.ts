import { readTracestate } from "./tracestate.ts";

/** Where a span stands: the form of W3C Trace Context. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  /** `tracestate`, as it goes on. */
  readonly state?: string | undefined;
}

/** Version ff is forbidden; versions after 00 may say more, behind another dash. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]{0,256})?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);
const SAMPLED = 1;

/** What a caller says about its own trace; nothing where it is not exactly as the standard wants it. */
export function readTraceparent(value: unknown): TraceContext | undefined {
  const found = typeof value === "string" ? TRACEPARENT.exec(value) : null;
  if (found === null) return undefined;
  const [, version, traceId = NO_TRACE, spanId = NO_SPAN, flags = "00", more] = found;
  if (traceId === NO_TRACE || spanId === NO_SPAN || (version === "00" && more !== undefined)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

export function toTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** What a carrier says, such as the headers of a request. `tracestate` belongs to the `traceparent` beside it, or is nothing. */
export function readTraceContext(carrier: unknown): TraceContext | undefined {
  if (typeof carrier !== "object" || carrier === null || !("traceparent" in carrier)) return undefined;
  const context = readTraceparent(carrier.traceparent);
  if (context === undefined || !("tracestate" in carrier)) return context;
  const state = readTracestate(carrier.tracestate);
  return state === undefined ? context : { ...context, state };
}

/** What an MCP request says in its own `_meta`. */
export function traceContextIn(params: Readonly<Record<string, unknown>> | undefined): TraceContext | undefined {
  return readTraceContext(params?.["_meta"]);
}
