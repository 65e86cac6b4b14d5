import { describe, expect, test } from "vitest";
import { compileSchema, type JsonSchema } from "../../../src/capability/schema.ts";

async function issues(schema: JsonSchema, value: unknown): Promise<string[]> {
  const verdict = await compileSchema(schema, "input").check(value);
  return verdict.ok ? [] : verdict.issues.map(({ path, message }) => `${path}: ${message}`);
}

const object = (properties: Record<string, JsonSchema>, more: JsonSchema = {}): JsonSchema => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});
const string = { type: "string" };
const number = { type: "number" };

const CARD = object({ kind: { const: "card" }, number: string });
const TRANSFER = object({ kind: { const: "transfer" }, iban: string });
const CASH = object({ kind: { const: "cash" } });
const PAYMENT = object({ payment: { oneOf: [CARD, TRANSFER, CASH] } });
const TREE: JsonSchema = {
  ...object({ root: { $ref: "#/$defs/Tree" } }),
  $defs: {
    Tree: object({ name: string, below: { anyOf: [{ $ref: "#/$defs/Tree" }, { type: "null" }] } }),
  },
};

describe("[004-R5.2] [004-R5.3] arguments that do not fit are told where, and what was expected", () => {
  test.each<[what: string, schema: JsonSchema, value: unknown, told: string[]]>([
    ["a wrong type", object({ a: string }), { a: 1 }, ["a: must be string, not number"]],
    [
      "null and lists by their names",
      object({ a: string, b: number }),
      { a: null, b: [] },
      ["a: must be string, not null", "b: must be number, not array"],
    ],
    [
      "a value that is none of the allowed ones",
      object({ a: { enum: ["x", 2, null] } }),
      { a: "y" },
      ['a: must be one of "x", 2, null'],
    ],
    ["a value that is not the only allowed one", object({ a: { const: "x" } }), { a: "y" }, ['a: must be "x"']],
    [
      "a missing field, with its type",
      object({ a: string, b: object({ c: {} }) }),
      { b: {} },
      ["a: is missing: must be string", "b.c: is missing"],
    ],
    [
      "an unknown field",
      object({ a: object({}) }),
      { a: { "x.y": 1 }, b: 1 },
      ["b: is unknown: remove it", "a.x.y: is unknown: remove it"],
    ],
    [
      "a list's item",
      object({ a: { type: "array", items: object({ b: string }) } }),
      { a: [{ b: "" }, { b: 2 }] },
      ["a[1].b: must be string, not number"],
    ],
    [
      "a date",
      object({ a: { type: "string", format: "date-time" } }),
      { a: "now" },
      ['a: must match format "date-time", such as 2026-07-28T12:00:00Z'],
    ],
    ["a slash and a tilde in a name", object({ "a/~b": string }), { "a/~b": 1 }, ["a/~b: must be string, not number"]],
  ])("%s", async (_what, schema, value, told) => {
    expect(await issues(schema, value)).toEqual(told);
  });
});

describe("a union tells about the member that was meant", () => {
  test.each<[what: string, schema: JsonSchema, value: unknown, told: string[]]>([
    [
      "by the field that tells them apart",
      PAYMENT,
      { payment: { kind: "card", number: 1 } },
      ["payment.number: must be string, not number"],
    ],
    [
      "or which ones there are",
      PAYMENT,
      { payment: { kind: "gold" } },
      ['payment.kind: must be one of "card", "transfer", "cash"'],
    ],
    [
      "also when nothing says which",
      PAYMENT,
      { payment: { iban: "x" } },
      ['payment.kind: is missing: must be one of "card", "transfer", "cash"'],
    ],
    ["also when it is no object", PAYMENT, { payment: 3 }, ["payment: must be object, not number"]],
    [
      "by its type",
      object({ a: { anyOf: [{ type: "array", items: string }, { type: "null" }] } }),
      { a: [1] },
      ["a[0]: must be string, not number"],
    ],
    [
      "or all types",
      object({ a: { anyOf: [{ type: "array" }, { type: "null" }, string] } }),
      { a: 1 },
      ["a: must be array, null or string, not number"],
    ],
    [
      "or types and values",
      object({ a: { anyOf: [{ enum: ["x", "y"] }, number] } }),
      { a: "z" },
      ['a: must be one of "x", "y", or number'],
    ],
    [
      "through references, at any depth",
      TREE,
      { root: { name: "a", below: { name: "b", below: { name: 3, below: null } } } },
      ["root.below.below.name: must be string, not number"],
    ],
    [
      "or the nearest one",
      object({ a: { anyOf: [object({ b: string, c: string }), object({ d: string })] } }),
      { a: {} },
      ["a: fits none of 2 allowed forms; the nearest one has these problems", "a.d: is missing: must be string"],
    ],
    [
      "or that it fits more than one",
      object({ a: { oneOf: [number, { type: "integer" }] } }),
      { a: 1 },
      ["a: must match exactly one schema in oneOf"],
    ],
  ])("%s", async (_what, schema, value, told) => {
    expect(await issues(schema, value)).toEqual(told);
  });
});

test("many problems are not told one by one", async () => {
  const schema = object({ a: { type: "array", items: { anyOf: [string, { type: "null" }] } } });
  const told = await issues(schema, { a: Array.from({ length: 100_000 }, () => 1) });
  expect(told[0]).toBe("a[0]: must be string or null, not number");
  // To look for all of them may take longer than a check is given.
  expect([1, 21]).toContain(told.length);
  const fewer = await issues(schema, { a: Array.from({ length: 100 }, () => 1) });
  expect(fewer).toHaveLength(21);
  expect(fewer[20]).toBe(": and more of the same kind");
});
