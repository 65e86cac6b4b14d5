import fc from "fast-check";
import { expect, test } from "vitest";
import { hasDuplicateMembers } from "../../../src/auth/bearer-token.ts";

test.each([
  '{"a":1,"a":2}',
  '{"a":1,"b":{"c":1,"c":2}}',
  '[{"a":[]},{"a":1,"b":"}","a":1}]',
  String.raw`{"sub":1,"s\u0075b":2}`,
  String.raw`{"\"":1,"\"":2}`,
  '{"__proto__":1,"__proto__":2}',
  '{"":1,"":2}',
])("finds the twins in %s", (json) => {
  expect(hasDuplicateMembers(json)).toBe(true);
});

test.each([
  '{"a":{"a":{"a":1}}}',
  '[{"a":1},{"a":1}]',
  '{"a":"a","b":"a"}',
  String.raw`{"a":"\"a\":","b":"{\"a\":1}"}`,
  "[]",
  '"a"',
])("finds none in %s", (json) => {
  expect(hasDuplicateMembers(json)).toBe(false);
});

test("finds none in anything that JSON.stringify wrote", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(hasDuplicateMembers(JSON.stringify(value))).toBe(false);
      expect(hasDuplicateMembers(JSON.stringify(value, null, 2))).toBe(false);
    }),
  );
});

test("finds a member repeated in any object", () => {
  fc.assert(
    fc.property(fc.string(), fc.jsonValue(), (name, value) => {
      const member = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
      expect(hasDuplicateMembers(`[{${member},${member}}]`)).toBe(true);
    }),
  );
});
