import fc from "fast-check";
import { readFileSync, rmSync } from "node:fs";
import { expect, test } from "vitest";
import { BoundedOutput } from "../../../../guest/output/bounded-output.ts";
import { OutputFiles } from "../../../../guest/output/output-files.ts";

function collect(chunks: readonly Uint8Array[], maxChars: number) {
  let streamed = "";
  const output = new BoundedOutput({ maxChars, files: new OutputFiles(), onText: (text) => (streamed += text) });
  for (const chunk of chunks) output.push(chunk);
  return { ...output.finish(), streamed };
}

const pieces = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 });
const toText = (chunks: readonly Uint8Array[]) =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(chunks));

test("any bytes in any pieces become one text", () => {
  fc.assert(
    fc.property(pieces, (chunks) => {
      const whole = toText(chunks);
      expect(collect(chunks, 5_000)).toEqual({ text: whole, totalChars: whole.length, streamed: whole });
    }),
  );
});

test("of a text that is too long both ends come back, and the whole is in the file", () => {
  fc.assert(
    fc.property(pieces, fc.integer({ min: 60, max: 400 }), (chunks, maxChars) => {
      const long = [Buffer.alloc(maxChars, "x"), ...chunks, Buffer.from("y")];
      const whole = toText(long);
      const { text, totalChars, file = "", streamed } = collect(long, maxChars);
      const [head = "", tail = ""] = text.split(/\n\[… \d+ characters cut …\]\n/u);
      expect({ streamed, totalChars }).toEqual({ streamed: whole, totalChars: whole.length });
      expect(text.length).toBeLessThanOrEqual(maxChars);
      expect([whole.startsWith(head), whole.endsWith(tail)]).toEqual([true, true]);
      expect(readFileSync(file, "utf8")).toBe(whole);
      rmSync(file);
    }),
  );
});

test("no character is cut in two", () => {
  for (let maxChars = 50; maxChars < 60; maxChars += 1) {
    const { text, file } = collect([Buffer.from("😀".repeat(100))], maxChars);
    expect(Buffer.from(text).toString()).toBe(text);
    rmSync(file ?? "");
  }
});

test("the cut says how much is missing", () => {
  const { text, file } = collect([Buffer.from("x".repeat(1_000))], 100);
  const cut = Number(/\[… (\d+) characters cut …\]/u.exec(text)?.[1]);
  expect(cut + text.replace(/\n\[.*\]\n/u, "").length).toBe(1_000);
  rmSync(file ?? "");
});
