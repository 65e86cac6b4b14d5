import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { expect, test } from "vitest";
import { boundedLines } from "../../../src/platform/bounded-lines.ts";

async function linesOf(chunks: readonly string[], maxLines?: number): Promise<string[]> {
  const stream = new PassThrough();
  const lines: string[] = [];
  const bound = maxLines === undefined ? {} : { maxLines };
  boundedLines(stream, { maxLineChars: 5, ...bound, onLine: (line) => lines.push(line) });
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  await finished(stream);
  return lines;
}

test("lines come out whole, wherever the stream cuts them, and the last one without its end too", async () => {
  expect(await linesOf(["on", "e\r\ntw", "o\n\nend"])).toEqual(["one", "two", "", "end"]);
});

test("what a line has beyond its limit is dropped, also when it comes in pieces", async () => {
  expect(await linesOf(["abcdefgh", "ijk\nnext\nlonger than that"])).toEqual(["abcde", "next", "longe"]);
});

test("after the last line that is wanted the stream is read to its end", async () => {
  expect(await linesOf(["1\n2\n3\n", "4\n", "5"], 2)).toEqual(["1", "2"]);
});

test("of a flood the last lines are given out, and the number of the others", async () => {
  const stream = new PassThrough();
  const lines: string[] = [];
  let skipped = 0;
  const onLine = (line: string): void => void lines.push(line);
  boundedLines(stream, { maxLineChars: 5, maxLinesAtOnce: 2, onLine, onSkipped: (count) => (skipped += count) });
  for (const chunk of ["begun", "\n\n\n\n1\n2\n3", "\n4\n"]) stream.write(chunk);
  stream.end();
  await finished(stream);
  expect(lines).toEqual(["1", "2", "3", "4"]);
  expect(skipped).toBe(4);
});
