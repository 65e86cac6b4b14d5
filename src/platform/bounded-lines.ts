import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

export interface BoundedLinesOptions {
  /** The characters of a line beyond this are dropped as they arrive. */
  readonly maxLineChars: number;
  /** After this many lines, the rest of the stream is read but ignored. */
  readonly maxLines?: number;
  /** Of a chunk with more lines, only the last ones are passed on, and the number of those before. */
  readonly maxLinesAtOnce?: number;
  readonly onLine: (line: string) => void;
  readonly onSkipped?: (count: number) => void;
}

/**
 * Passes on the lines of a stream. The stream is always read, and a line without end takes no more memory than a long
 * one.
 */
export function boundedLines(stream: Readable, options: BoundedLinesOptions): void {
  const { maxLineChars, maxLines = Number.POSITIVE_INFINITY, onLine } = options;
  const { maxLinesAtOnce = Number.POSITIVE_INFINITY, onSkipped = () => undefined } = options;
  const decoder = new StringDecoder("utf8");
  let line = "";
  let lines = 0;
  const add = (text: string): void => {
    line += text.slice(0, maxLineChars - line.length);
  };
  const tell = (): void => {
    lines += 1;
    if (lines <= maxLines) onLine(line.endsWith("\r") ? line.slice(0, -1) : line);
    line = "";
  };
  const onData = (chunk: Buffer): void => {
    const from = startOfLast(chunk, maxLinesAtOnce);
    if (from > 0) {
      onSkipped(linesIn(chunk, from));
      decoder.end();
      line = "";
    }
    const [first = "", ...more] = decoder.write(chunk.subarray(from)).split("\n");
    add(first);
    for (const piece of more) {
      tell();
      add(piece);
    }
    if (lines >= maxLines) stream.off("data", onData).resume();
  };
  stream.on("data", onData);
  stream.once("end", () => {
    if (line !== "") tell();
  });
}

const LINE_FEED = 0x0a;

/** The position after the line feed before the last lines; 0 when there are not that many. */
function startOfLast(chunk: Buffer, maxLines: number): number {
  if (!Number.isFinite(maxLines)) return 0;
  let at = chunk.length;
  for (let line = 0; line <= maxLines && at > 0; line += 1) at = chunk.lastIndexOf(LINE_FEED, at - 1);
  return at > 0 ? at + 1 : 0;
}

function linesIn(chunk: Buffer, end: number): number {
  let lines = 0;
  for (let at = chunk.indexOf(LINE_FEED); at !== -1 && at < end; at = chunk.indexOf(LINE_FEED, at + 1)) lines += 1;
  return lines;
}
