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
  text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }).filter((text) => !text.includes("\n")),
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

const SIZE_OF_TWO_TEXTS = 4;

function sizeOf({ text, elements }: SnapshotPart): number {
  return JSON.stringify(text).length + JSON.stringify(elements).length - SIZE_OF_TWO_TEXTS;
}

test("a line that is longer than any part is split at spaces, and its refs stay with their words", () => {
  const words = Array.from({ length: 2000 }, (_, index) => `word${index}`);
  words[1500] = "[ref_7]";
  const pages = new SnapshotPages();
  const cursor = pages.add([{ text: words.join(" "), elements: ['[ref_7] button "Far"'] }]);
  for (const maxChars of [200, 500, 3000]) {
    const parts = readAll(pages, cursor, maxChars);
    expect(parts.map(({ text }) => text).join(" ")).toBe(words.join(" "));
    expect(Math.max(...parts.map(sizeOf))).toBeLessThanOrEqual(maxChars);
    expect(parts.filter(({ elements }) => elements !== "").map(({ text }) => text.includes("[ref_7]"))).toEqual([true]);
  }
});

test("a line that fits is not split, however long it is", () => {
  const text = "word ".repeat(3000).trim();
  const pages = new SnapshotPages();
  const part = pages.read(pages.add([{ text, elements: [] }]), 20_000);
  expect(part).toEqual({ text, elements: "", totalChars: text.length + 2 });
});

test("a line without spaces is split between characters", () => {
  const text = "\u{1f30d}你好\u0001".repeat(1000);
  const pages = new SnapshotPages();
  const parts = readAll(pages, pages.add([{ text, elements: [] }]), 500);
  expect(parts.map((part) => part.text).join("")).toBe(text);
  expect(Math.max(...parts.map(sizeOf))).toBeLessThanOrEqual(500);
  for (const part of parts) expect(part.text).not.toMatch(/\p{Surrogate}/u);
});

test("a line of many refs takes as many parts as its elements need, and every element is in one of them, once", () => {
  const refs = Array.from({ length: 400 }, (_, index) => `[ref_${index + 1}]`);
  const elements = refs.map((ref) => `${ref} button "${'"'.repeat(100)}"`);
  const pages = new SnapshotPages();
  const parts = readAll(pages, pages.add([{ text: `    ${refs.join(" x ")}`, elements }]), 1000);
  expect(Math.max(...parts.map(sizeOf))).toBeLessThanOrEqual(1000);
  expect(parts.flatMap((part) => part.elements.split("\n"))).toEqual(elements);
  for (const part of parts) {
    const named = part.elements.split("\n").map((line) => line.slice(0, line.indexOf("]") + 1));
    expect(part.text.match(/\[ref_\d+\]/g)).toEqual(named);
  }
});

test("an element that is longer than any part comes alone and whole", () => {
  const elements = ["[ref_1] button", `[ref_2] listbox ${"option ".repeat(50)}`, "[ref_3] button"];
  const pages = new SnapshotPages();
  const parts = readAll(pages, pages.add([{ text: "[ref_1] [ref_2] [ref_3] end", elements }]), 200);
  expect(parts.map((part) => [part.text, part.elements])).toEqual([
    ["[ref_1]", elements[0]],
    ["[ref_2]", elements[1]],
    ["[ref_3] end", elements[2]],
  ]);
});

test("a snapshot that is too old has no parts left", () => {
  const pages = new SnapshotPages();
  const first = pages.add([{ text: "old", elements: [] }]);
  for (let newer = 0; newer < 10; newer += 1) pages.add([{ text: "new", elements: [] }]);
  expect(() => pages.read(first, 1000)).toThrow("there is no such cursor any more");
  expect(() => pages.read("nonsense", 1000)).toThrow("there is no such cursor any more");
});
