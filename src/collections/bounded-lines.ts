import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

export interface BoundedLinesOptions {
  /** What a line has beyond them is dropped as it comes. */
  readonly maxLineChars: number;
  /** After these nothing is looked at any more, and the stream is read to its end. */
  readonly maxLines?: number;
  readonly onLine: (line: string) => void;
}

/** The lines of a stream. It is always read, and a line without end takes no more memory than a long one. */
export function boundedLines(stream: Readable, options: BoundedLinesOptions): void {
  const { maxLineChars, maxLines = Number.POSITIVE_INFINITY, onLine } = options;
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
    const [first = "", ...more] = decoder.write(chunk).split("\n");
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
