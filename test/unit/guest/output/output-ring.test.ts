import fc from "fast-check";
import { expect, test } from "vitest";
import { OutputRing } from "../../../../guest/shell/background.ts";

test("reading on from each cursor gives everything, or says how much is gone", () => {
  const pieces = fc.array(fc.string({ minLength: 1, maxLength: 30 }), { maxLength: 40 });
  fc.assert(
    fc.property(pieces, fc.integer({ min: 2, max: 20 }), (texts, maxChars) => {
      const ring = new OutputRing(100);
      for (const text of texts) ring.push(text);
      const whole = texts.join("");
      let cursor = 0;
      let read = "";
      let skipped = 0;
      while (cursor < whole.length) {
        const part = ring.read(cursor, maxChars);
        expect(part.cursor).toBeGreaterThan(cursor);
        ({ cursor } = part);
        read += part.text;
        skipped += part.skippedChars;
      }
      expect(skipped + read.length).toBe(whole.length);
      expect(whole.endsWith(read)).toBe(true);
      expect(read.length).toBeGreaterThanOrEqual(Math.min(whole.length, 100));
    }),
  );
});

test("a cursor from the future reads nothing", () => {
  const ring = new OutputRing(10);
  ring.push("abc");
  expect(ring.read(99, 5)).toEqual({ text: "", cursor: 3, skippedChars: 0 });
});
