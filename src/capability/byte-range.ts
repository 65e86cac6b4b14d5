/** The bytes from `start` up to `end`, which is not part of them. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** One range of the `Range` header. Several, or what is no range, count as no header: the answer is then the whole. */
export function byteRange(header: string | undefined, sizeBytes: number): ByteRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (first === "") return last === "" ? undefined : lastBytes(Number(last), sizeBytes);
  const start = Number(first);
  const end = last === "" ? sizeBytes : Number(last) + 1;
  if (end <= start && last !== "") return undefined;
  return start >= sizeBytes ? "unsatisfiable" : { start, end: Math.min(end, sizeBytes) };
}

function lastBytes(count: number, sizeBytes: number): ByteRange | "unsatisfiable" {
  if (count === 0 || sizeBytes === 0) return "unsatisfiable";
  return { start: Math.max(0, sizeBytes - count), end: sizeBytes };
}
