import type { Readable } from "node:stream";

interface LineReaderOptions {
  readonly onLine: (line: string) => void;
  /** A longer line ends the stream. */
  readonly maxLineBytes: number;
}

/** Splits a stream at newlines. */
export function readLines(stream: Readable, { onLine, maxLineBytes }: LineReaderOptions): void {
  let parts: Buffer[] = [];
  let partBytes = 0;
  stream.on("data", (chunk: Buffer) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const last = chunk.subarray(start, end);
      const line = parts.length === 0 ? last : Buffer.concat([...parts, last]);
      parts = [];
      partBytes = 0;
      start = end + 1;
      onLine(line.toString("utf8"));
    }
    if (start === chunk.length) return;
    parts.push(chunk.subarray(start));
    partBytes += chunk.length - start;
    if (partBytes > maxLineBytes) stream.destroy();
  });
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
