import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FileDescription } from "../../../../src/handlers/handler-description.ts";
import { HandlerFiles } from "./handler-files.ts";
import { TYPE_CORPUS, type TypeCase } from "./type-corpus.ts";

let files: HandlerFiles;
let described: readonly FileDescription[];

function source({ given = "", type }: TypeCase): string {
  return `${given}\n/** Takes one. */\nexport function take(value: ${type}, last?: boolean): void {}\n`;
}

beforeAll(async () => {
  const names = TYPE_CORPUS.map((_, index) => `case-${index}.ts`);
  files = await HandlerFiles.make(Object.fromEntries(TYPE_CORPUS.map((entry, index) => [names[index], source(entry)])));
  described = await files.describe(...names);
}, 60_000);
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

test("[004-R14.5] every schema is valid against the meta-schema of 2020-12", () => {
  const ajv = new Ajv2020({ strict: false });
  for (const { handlers } of described) {
    expect(ajv.validateSchema(handlers[0]?.inputSchema ?? false)).toBe(true);
    expect(ajv.errors).toBeNull();
  }
});
