import { Ajv2020, type AnySchema } from "ajv/dist/2020.js";
import { default as formats } from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FileDescription } from "../../../../src/handlers/handler-description.ts";
import { HandlerFiles } from "./handler-files.ts";
import { TYPE_CORPUS, type TypeCase } from "./type-corpus.ts";

let files: HandlerFiles;
let described: readonly FileDescription[];

function source({ given = "", type }: TypeCase): string {
  return `${given}
/** Takes one. */
export function take(value: ${type}, last?: boolean): void {}
/** Gives one. */
export declare function give(): ${type};
`;
}

/** What only an input can be, and what says nothing about an output. */
const NO_OUTPUT = /^(any|unknown|undefined|void|never)$/;

beforeAll(async () => {
  const names = TYPE_CORPUS.map((_, index) => `case-${index}.ts`);
  files = await HandlerFiles.make(Object.fromEntries(TYPE_CORPUS.map((entry, index) => [names[index], source(entry)])));
  described = await files.describe(...names);
});
afterAll(() => files.remove());

describe("[004-R14.2] [004-R14.4] a type as JSON Schema", () => {
  test.each(TYPE_CORPUS.map((entry, index) => ({ ...entry, index })))("$type", ({ schema, defs, dates, index }) => {
    expect(described[index]?.problems).toEqual([]);
    const handler = described[index]?.handlers[0];
    expect(handler?.inputSchema).toEqual({
      type: "object",
      properties: { value: schema, last: { type: "boolean" } },
      required: ["value"],
      additionalProperties: false,
      ...(defs === undefined ? {} : { $defs: defs }),
    });
    expect(handler?.dates).toEqual(dates ?? []);
  });
});

test("the corpus has at least 80 signatures", () => {
  expect(TYPE_CORPUS.length).toBeGreaterThanOrEqual(80);
});

describe("[004-R14.5] every schema is valid against the meta-schema of 2020-12, and compiles", () => {
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);

  test("inputs", () => {
    expect(described.length).toBeGreaterThanOrEqual(80);
    for (const { handlers } of described) expectValid(ajv, handlers[0]?.inputSchema);
  });

  test("outputs", () => {
    const schemas = described.map(({ handlers }) => handlers.find(({ name }) => name === "give")?.outputSchema);
    const without = TYPE_CORPUS.filter((_, index) => schemas[index] === undefined).map(({ type }) => type);
    expect(without.filter((type) => !NO_OUTPUT.test(type))).toEqual([]);
    for (const schema of schemas) if (schema !== undefined) expectValid(ajv, schema);
  });
});

function expectValid(ajv: Ajv2020, schema: unknown): void {
  expect(ajv.validateSchema(schema as AnySchema)).toBe(true);
  expect(ajv.errors).toBeNull();
  expect(() => ajv.compile(schema as AnySchema)).not.toThrow();
}
