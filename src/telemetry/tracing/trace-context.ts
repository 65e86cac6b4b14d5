import { randomFillSync } from "node:crypto";

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

/** One look at the source of randomness for many ids. */
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

/** 128 random bits, as W3C Trace Context wants them. */
export function newRandomTraceId(): string {
  return randomHex(16);
}

/** As many as the standard allows; with more of them the whole is no good. */
const MAX_MEMBERS = 32;
/** What everybody must be able to pass on. More would be paid for with every span. */
const MAX_CHARS = 512;
/** Members longer than this go first when there is too much. */
const LONG_MEMBER_CHARS = 128;
/** 32 members with a key and a value of 256 characters each, and what stands between them. */
const MAX_READ_CHARS = 20_000;

const MEMBER =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * `tracestate` by W3C Trace Context: what tracing systems along the way keep for themselves. It is nobody's business here
 * and goes on in its order; what is not as the standard wants it is dropped as a whole.
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

/** What came last into the list stands first, and is what counts most. */
function fitting(members: readonly string[]): readonly string[] {
  const kept = [...members];
  while (kept.join(",").length > MAX_CHARS) {
    const longAt = kept.findLastIndex(({ length }) => length > LONG_MEMBER_CHARS);
    kept.splice(longAt === -1 ? kept.length - 1 : longAt, 1);
  }
  return kept;
}
