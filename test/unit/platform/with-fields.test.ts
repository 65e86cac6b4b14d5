import { expect, test } from "vitest";
import { withFields } from "../../../src/call/call.ts";

test("a copy has the fields of both, in their order, and leaves both as they were", () => {
  const base = { a: 1, b: 2 };
  const copy = withFields(base, { b: 3, c: 4 });
  expect(Object.entries(copy)).toEqual([
    ["a", 1],
    ["b", 3],
    ["c", 4],
  ]);
  expect(base).toEqual({ a: 1, b: 2 });
});

test("a field called __proto__ stays a field: whoever wrote it chooses nothing that the copy inherits", () => {
  const base: object = JSON.parse('{"__proto__": {"isError": true}, "a": 1}');
  const copy: object = withFields(base, { b: 2 });
  expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
  expect("isError" in copy).toBe(false);
  expect(JSON.stringify(copy)).toBe('{"__proto__":{"isError":true},"a":1,"b":2}');
});
