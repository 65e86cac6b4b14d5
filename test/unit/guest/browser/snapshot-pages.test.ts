import fc from "fast-check";
import { expect, test } from "vitest";
import {
  SnapshotPages,
  type SnapshotLine,
  type SnapshotPart,
} from "../../../../guest/browser/driver/snapshot-pages.ts";

function readAll(pages: SnapshotPages, first: string, maxChars: number): SnapshotPart[] {
  const parts: SnapshotPart[] = [];
  for (let cursor: string | undefined = first; cursor !== undefined; cursor = parts.at(-1)?.cursor)
    parts.push(pages.read(cursor, maxChars));
  return parts;
}

const line: fc.Arbitrary<SnapshotLine> = fc.record({
  text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }).filter((text) => !text.includes("\n")),
  elements: fc.array(fc.stringMatching(/^\[ref_\d{1,3}\] button "[a-z"]{1,9}"$/), { maxLength: 3 }),
});

test("parts fit, and together they are the whole, in order", () => {
  fc.assert(
    fc.property(fc.array(line, { minLength: 1 }), fc.integer({ min: 500, max: 2000 }), (lines, maxChars) => {
      const pages = new SnapshotPages();
      const parts = readAll(pages, pages.add(lines), maxChars);
      expect(parts.map(({ text }) => text).join("\n")).toBe(lines.map(({ text }) => text).join("\n"));
      expect(parts.flatMap(({ elements }) => (elements === "" ? [] : elements.split("\n")))).toEqual(
        lines.flatMap(({ elements }) => elements),
      );
      for (const { text, elements } of parts) {
        expect(JSON.stringify(text).length + JSON.stringify(elements).length).toBeLessThanOrEqual(maxChars + 4);
      }
    }),
  );
});

test("a line that is longer than any part is split at spaces, and its refs stay with their words", () => {
  const words = Array.from({ length: 2000 }, (_, index) => `word${index}`);
  words[1500] = "[ref_7]";
  const pages = new SnapshotPages();
  const cursor = pages.add([{ text: words.join(" "), elements: ['[ref_7] button "Far"'] }]);
  const parts = readAll(pages, cursor, 3000);
  expect(parts.map(({ text }) => text.replaceAll("\n", " ")).join(" ")).toBe(words.join(" "));
  expect(parts.filter(({ elements }) => elements !== "").map(({ text }) => text.includes("[ref_7]"))).toEqual([true]);
});

test("a snapshot that is too old has no parts left", () => {
  const pages = new SnapshotPages();
  const first = pages.add([{ text: "old", elements: [] }]);
  for (let newer = 0; newer < 10; newer += 1) pages.add([{ text: "new", elements: [] }]);
  expect(() => pages.read(first, 1000)).toThrow("there is no such cursor any more");
  expect(() => pages.read("nonsense", 1000)).toThrow("there is no such cursor any more");
});
