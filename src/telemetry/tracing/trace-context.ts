import { randomFillSync } from "node:crypto";

/** The identity of a span, in the form of W3C Trace Context. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  /** The `tracestate` that is passed on. */
  readonly state?: string | undefined;
}

/** Version ff is forbidden. Versions after 00 may append further fields after another dash. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]{0,256})?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);
const SAMPLED = 1;

/** Parses the `traceparent` of a caller. Undefined when it does not match the standard exactly. */
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

/**
 * Reads the trace context of a carrier, such as the headers of a request. `tracestate` is ignored without a valid
 * `traceparent`.
 */
export function readTraceContext(carrier: unknown): TraceContext | undefined {
  if (typeof carrier !== "object" || carrier === null || !("traceparent" in carrier)) return undefined;
  const context = readTraceparent(carrier.traceparent);
  if (context === undefined || !("tracestate" in carrier)) return context;
  const state = readTracestate(carrier.tracestate);
  return state === undefined ? context : { ...context, state };
}

/** Reads the trace context in the `_meta` of an MCP request. */
export function traceContextIn(params: Readonly<Record<string, unknown>> | undefined): TraceContext | undefined {
  return readTraceContext(params?.["_meta"]);
}

/** Random bytes for many ids, to call the random source less often. */
const pool = Buffer.allocUnsafe(4096);
let used = pool.length;

function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString("hex", used - bytes, used);
}

export function newSpanId(): string {
  return randomHex(8);
}

/** 128 random bits, as W3C Trace Context requires. */
export function newRandomTraceId(): string {
  return randomHex(16);
}

/** The maximum number of members in the standard. A longer list is dropped as a whole. */
const MAX_MEMBERS = 32;
/**
 * The minimum length that the standard requires systems to propagate. A longer text would be exported with every span.
 */
const MAX_CHARS = 512;
/** Members longer than this are removed first when the list is too long. */
const LONG_MEMBER_CHARS = 128;
/** 32 members with a key and a value of 256 characters each, and their separators. */
const MAX_READ_CHARS = 20_000;

const MEMBER =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Parses `tracestate` of W3C Trace Context: the data of tracing systems along the request. The server passes it on in
 * its order and does not interpret it. A list that does not match the standard is dropped as a whole.
 */
export function readTracestate(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length > MAX_READ_CHARS) return undefined;
  const members = value
    .split(",")
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  if (members.length > MAX_MEMBERS || !members.every((member) => MEMBER.test(member))) return undefined;
  const state = fitting(members).join(",");
  return state === "" ? undefined : state;
}

/** Members at the front are the most recent and the most important, so members are removed from the end. */
function fitting(members: readonly string[]): readonly string[] {
  const kept = [...members];
  while (kept.join(",").length > MAX_CHARS) {
    const longAt = kept.findLastIndex(({ length }) => length > LONG_MEMBER_CHARS);
    kept.splice(longAt === -1 ? kept.length - 1 : longAt, 1);
  }
  return kept;
}
