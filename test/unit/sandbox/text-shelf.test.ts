import { expect, test } from "vitest";
import { TextShelf } from "../../../src/sandbox/text-shelf.ts";

test("a text that several have is kept once, until the last of them has dropped it", () => {
  const shelf = new TextShelf(100);
  expect([shelf.keep("one"), shelf.keep("one"), shelf.keep("three")]).toEqual(["one", "one", "three"]);
  expect(shelf.chars).toBe(8);
  shelf.drop("one");
  expect(shelf.chars).toBe(8);
  shelf.drop("one");
  expect(shelf.chars).toBe(5);
  shelf.drop("one");
  shelf.drop("three");
  expect(shelf.chars).toBe(0);
});

test("nothing is kept for which there is no room, and what is there already needs none", () => {
  const shelf = new TextShelf(5);
  expect([shelf.keep("four"), shelf.keep("ab"), shelf.keep("four"), shelf.keep("a")]).toEqual([
    "four",
    undefined,
    "four",
    "a",
  ]);
  expect(shelf.chars).toBe(5);
});
