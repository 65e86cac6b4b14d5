import fc from "fast-check";
import { expect, test } from "vitest";
import { paginate } from "../../../src/mcp/paginate.ts";

const keyOf = (name: string): string => name;

function walk(items: readonly string[], size: number): string[][] {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = paginate(items, { list: "names", size, cursor, keyOf });
    pages.push([...page.items]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return pages;
}

test("pages together are the list, and only the last may be short", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string()), fc.integer({ min: 1, max: 7 }), (names, size) => {
      const items = names.toSorted((a, b) => (a < b ? -1 : 1));
      const pages = walk(items, size);
      expect(pages.flat()).toEqual(items);
      expect(pages.slice(0, -1).every((page) => page.length === size)).toBe(true);
    }),
  );
});

test("an item that goes away between two pages does not make others come twice or never", () => {
  const items = ["a", "b", "c", "d", "e"];
  const { nextCursor } = paginate(items, { list: "names", size: 2, cursor: undefined, keyOf });
  const without = items.filter((name) => name !== "b");
  expect(paginate(without, { list: "names", size: 2, cursor: nextCursor, keyOf }).items).toEqual(["c", "d"]);
});

test("a cursor of one list is refused by another", () => {
  const { nextCursor } = paginate(["a", "b"], { list: "tools", size: 1, cursor: undefined, keyOf });
  expect(() => paginate(["a", "b"], { list: "prompts", size: 1, cursor: nextCursor, keyOf })).toThrow(/cursor/);
});
