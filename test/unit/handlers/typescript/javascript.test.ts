import { afterAll, beforeAll, expect, test } from "vitest";
import type { FileDescription } from "../../../../src/handlers/handler-description.ts";
import { HandlerFiles } from "./handler-files.ts";

const JAVASCRIPT = `
/**
 * @typedef {object} Item
 * @property {string} sku the stock number
 * @property {number} [count]
 */

/**
 * Adds to the basket.
 * @param {Item[]} items what to add
 * @param {"fast" | "slow"} [speed="slow"] how soon @title Speed
 * @param {Date=} when
 * @returns {Promise<{ total: number }>} the sum
 */
export async function add(items, speed, when) { return { total: items.length }; }

/**
 * Takes options.
 * @param {object} options
 * @param {string} options.name the name
 * @param {?number} options.age
 * @param {boolean} [options.strict]
 */
export const options = ({ name, age, strict = true }) => {};

/**
 * With context.
 * @param {string} name
 * @param {import("owlclaw").CallContext} context
 */
export function context(name, context) {}

/** @type {(input: { id: number }) => string} Typed at once. */
export const typed = ({ id }) => String(id);

/** Defaults have types. */
export function inferred(count = 3, name = "x") { return count; }

/** Untyped. */
export function untyped(name) {}
`;

let files: HandlerFiles;
let described: FileDescription | undefined;

beforeAll(async () => {
  files = await HandlerFiles.make({ "all.mjs": JAVASCRIPT });
  [described] = await files.describe("all.mjs");
});
afterAll(() => files.remove());

function handler(name: string) {
  return described?.handlers.find((found) => found.name === name);
}

test("[004-R14.2] JavaScript has its types in doc comments", () => {
  expect(handler("add")).toMatchObject({
    description: "Adds to the basket.",
    call: { style: "positional", parameters: ["items", "speed", "when"] },
    dates: ["/when"],
    outputSchema: { type: "object", properties: { total: { type: "number" } }, description: "the sum" },
  });
  expect(handler("add")?.inputSchema).toEqual({
    type: "object",
    properties: {
      items: {
        type: "array",
        items: {
          type: "object",
          properties: { sku: { type: "string", description: "the stock number" }, count: { type: "number" } },
          required: ["sku"],
          additionalProperties: false,
        },
        description: "what to add",
      },
      speed: { type: "string", enum: ["fast", "slow"], default: "slow", description: "how soon", title: "Speed" },
      when: { type: "string", format: "date-time" },
    },
    required: ["items"],
    additionalProperties: false,
  });
});

test("an object parameter is written field by field", () => {
  expect(handler("options")?.call).toEqual({ style: "object", parameters: ["name", "age", "strict"] });
  expect(handler("options")?.inputSchema).toEqual({
    type: "object",
    properties: {
      name: { type: "string", description: "the name" },
      age: { anyOf: [{ type: "number" }, { type: "null" }] },
      strict: { type: "boolean", default: true },
    },
    required: ["name", "age"],
    additionalProperties: false,
  });
});

test("the context is recognised by its type", () => {
  expect(handler("context")?.call).toEqual({ style: "positional", parameters: ["name"], context: 1 });
});

test("a default is a type", () => {
  expect(handler("inferred")?.inputSchema["properties"]).toEqual({
    count: { type: "number", default: 3 },
    name: { type: "string", default: "x" },
  });
});

test("a parameter without a type is refused, and the fix shows the tag", () => {
  expect(described?.problems.filter(({ message }) => message.startsWith("untyped"))).toMatchObject([
    {
      message: "untyped: the parameter name has no type",
      fix: 'write its type, in JavaScript as "@param {string} name"',
    },
  ]);
});
