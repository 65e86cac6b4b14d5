import { expect, test } from "vitest";
import { TextStore } from "../../../src/sandbox/workspace-start.ts";

test("a text that several have is kept once, until the last of them has dropped it", () => {
  const store = new TextStore(100);
  expect([store.keep("one"), store.keep("one"), store.keep("three")]).toEqual(["one", "one", "three"]);
  expect(store.chars).toBe(8);
  store.drop("one");
  expect(store.chars).toBe(8);
  store.drop("one");
  expect(store.chars).toBe(5);
  store.drop("one");
  store.drop("three");
  expect(store.chars).toBe(0);
});

test("nothing is kept for which there is no room, and what is there already needs none", () => {
  const store = new TextStore(5);
  expect([store.keep("four"), store.keep("ab"), store.keep("four"), store.keep("a")]).toEqual([
    "four",
    undefined,
    "four",
    "a",
  ]);
  expect(store.chars).toBe(5);
});
