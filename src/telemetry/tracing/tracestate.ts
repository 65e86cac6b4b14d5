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
