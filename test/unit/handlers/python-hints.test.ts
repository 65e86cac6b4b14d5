import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPython, PYTHON_FOLDER } from "../../../src/handlers/python/python-command.ts";
import { CORPUS, SETUP } from "./python-corpus.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-hints-"));
const file = path.join(folder, "corpus.py");

interface Described {
  readonly functions: readonly { readonly inputSchema: Readonly<Record<string, unknown>> }[];
  readonly problems: readonly unknown[];
}

const DESCRIBE = `
import json, sys
from owlclaw.describe import LoadedModule
print(json.dumps(LoadedModule(sys.argv[1]).report()))
`;

/** Says for each line [function, arguments] whether the conversion takes it. */
const CONVERT = `
import json, sys
from owlclaw.describe import LoadedModule
from owlclaw.shapes import Misfit
handlers = LoadedModule(sys.argv[1]).handlers
print("ready", flush=True)
for line in sys.stdin:
    name, value = json.loads(line)
    try:
        handlers[name].arguments(value, None)
        print("yes", flush=True)
    except Misfit:
        print("no", flush=True)
    except Exception as error:
        print("error", repr(error), flush=True)
`;

let python: string;
let described: Described;

beforeAll(async () => {
  const functions = CORPUS.map(({ hint }, index) => `def f${index}(value: ${hint}) -> None:\n    """Does it."""\n`);
  writeFileSync(file, `${SETUP}\n${functions.join("\n")}`);
  python = await findPython({ python: "", env: process.env });
  const env = { ...process.env, PYTHONPATH: PYTHON_FOLDER };
  described = JSON.parse(execFileSync(python, ["-B", "-c", DESCRIBE, file], { env, encoding: "utf8" }));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("[004-R14.2] [004-R14.4] the corpus has at least 60 signatures, and none of them is a problem", () => {
  expect(CORPUS.length).toBeGreaterThanOrEqual(60);
  expect(described.problems).toEqual([]);
});

describe("[004-R14.2] [004-R14.4] a Python type hint", () => {
  test.each(
    CORPUS.map(({ hint, schema, definitions }, index) => ({ hint, schema, definitions, index })).filter(
      ({ schema }) => schema !== undefined,
    ),
  )("$hint", ({ schema, definitions, index }) => {
    expect(described.functions[index]?.inputSchema).toEqual({
      type: "object",
      properties: { value: schema },
      required: ["value"],
      additionalProperties: false,
      ...(definitions !== undefined && { $defs: definitions }),
    });
  });
});

test("[004-R14.5] every schema is a valid 2020-12 schema", () => {
  const ajv = newAjv();
  const meta = ajv.getSchema("https://json-schema.org/draft/2020-12/schema");
  for (const { inputSchema } of described.functions)
    expect([inputSchema, meta?.(inputSchema)]).toEqual([inputSchema, true]);
});

test("[004-R14.5] the conversion takes exactly the values that the schema allows", async () => {
  const converter = new Converter(python, file);
  const ajv = newAjv();
  try {
    await converter.ready;
    for (const [index, { inputSchema }] of described.functions.entries()) {
      const allows = ajv.compile(inputSchema);
      const { $defs = {}, properties } = inputSchema as { $defs?: object; properties: { value: Schema } };
      const values = fc.sample(fc.oneof(like(properties.value, $defs), fc.jsonValue({ maxDepth: 2 })), {
        numRuns: 40,
        seed: index + 1,
      });
      for (const value of values) {
        const input = { value: JSON.parse(JSON.stringify(value)) };
        const taken = await converter.takes(`f${index}`, input);
        expect([CORPUS[index]?.hint, input, taken]).toEqual([CORPUS[index]?.hint, input, allows(input) ? "yes" : "no"]);
      }
    }
  } finally {
    converter.close();
  }
});

function newAjv() {
  const ajv = new Ajv2020.default({ strict: false, allErrors: false });
  addFormats.default(ajv);
  return ajv;
}

class Converter {
  readonly ready: Promise<string>;
  readonly #child;
  readonly #waiting: ((line: string) => void)[] = [];

  constructor(program: string, source: string) {
    const env = { ...process.env, PYTHONPATH: PYTHON_FOLDER };
    this.#child = spawn(program, ["-B", "-c", CONVERT, source], { env, stdio: ["pipe", "pipe", "inherit"] });
    this.ready = this.#line();
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#waiting.shift()?.(line));
  }

  takes(name: string, input: object): Promise<string> {
    const answer = this.#line();
    this.#child.stdin.write(`${JSON.stringify([name, input])}\n`);
    return answer;
  }

  close(): void {
    this.#child.kill();
  }

  #line(): Promise<string> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- a schema is walked, whatever it is
type Schema = any;

/** Values that fit, or nearly do. */
function like(schema: Schema, definitions: Schema, depth = 0): fc.Arbitrary<unknown> {
  const inner = (below: Schema): fc.Arbitrary<unknown> => like(below, definitions, depth + 1);
  if (depth > 3) return fc.constantFrom<unknown>(null, 1, "a", [], {});
  if (schema.$ref !== undefined) return inner(definitions[schema.$ref.split("/").at(-1)]);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(inner));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum, "other", 0, 1);
  if (schema.format === "date-time")
    return fc.constantFrom(
      "2026-01-31T12:00:00Z",
      "2026-01-31T12:00:00+01:00",
      "2026-13-31T12:00:00Z",
      "2026-01-31",
      "soon",
    );
  if (schema.format === "date") return fc.constantFrom("2026-01-31", "2026-02-30", "2024-02-29", "31.1.2026");
  if (schema.format === "uuid") return fc.oneof(fc.uuid(), fc.constant("no"));
  switch (schema.type) {
    case "string":
      return schema.pattern === undefined
        ? fc.string()
        : fc.constantFrom("abc", "YQ==", "YWI=", "aGVsbG8", "1.50", "-3", "", "x y");
    case "integer":
      return fc.constantFrom<unknown>(0, 1, 3, 5, 6, -2, 1.5, 2.0, true, "1");
    case "number":
      return fc.oneof(fc.integer(), fc.constantFrom<unknown>(0.5, "1", false));
    case "boolean":
      return fc.constantFrom<unknown>(true, false, 0, 1, "true");
    case "null":
      return fc.constantFrom<unknown>(null, 0, "");
    case "array":
      return schema.prefixItems === undefined
        ? fc.array(inner(schema.items ?? {}), { maxLength: 4 })
        : fc.oneof(fc.tuple(...schema.prefixItems.map(inner)), fc.array(fc.integer(), { maxLength: 3 }));
    case "object":
      return objectLike(schema, inner);
    default:
      return Array.isArray(schema.type)
        ? fc.constantFrom<unknown>("1.50", 2, 2.5, "x", "-7", null, true)
        : fc.jsonValue({ maxDepth: 1 });
  }
}

function objectLike(schema: Schema, inner: (schema: Schema) => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  if (schema.properties === undefined) {
    const names = fc.constantFrom("a", "b", "red", "blue", "1", "-2", "x y");
    return fc.dictionary(
      names,
      schema.additionalProperties === true ? fc.jsonValue({ maxDepth: 1 }) : inner(schema.additionalProperties),
      { maxKeys: 3 },
    );
  }
  const entries = Object.entries(schema.properties).map(([name, below]) => [name, inner(below)] as const);
  return fc.record({ ...Object.fromEntries(entries), extra: fc.constant(1) }, { requiredKeys: [] }).chain((value) =>
    fc.boolean().map((isStrict) => {
      if (!isStrict) return value;
      const { extra: _extra, ...rest } = value;
      return rest;
    }),
  );
}
