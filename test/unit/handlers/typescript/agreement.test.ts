import { Ajv2020 } from "ajv/dist/2020.js";
import { default as formats } from "ajv-formats";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { JsonSchema } from "../../../../src/capability/schema.ts";
import { judge } from "./compiler-judge.ts";
import { HandlerFiles } from "./handler-files.ts";
import { mutants } from "./mutants.ts";
import { TYPE_CORPUS } from "./type-corpus.ts";

const VALUES_PER_TYPE = 40;
const CASES = TYPE_CORPUS.filter((entry) => entry.judge !== false);
/** The long run uses random values, the short one a fixed seed. */
const SEED = process.env["OWLCLAW_TEST_LONG"] === "1" ? Math.trunc(Math.random() * 2 ** 31) : 1;

interface Row {
  readonly type: string;
  readonly isMixedUnion: boolean;
  readonly schema: JsonSchema;
  /** Of a function that returns the type; undefined where the type promises nothing. */
  readonly output: JsonSchema | undefined;
  readonly values: readonly unknown[];
  readonly verdicts: readonly boolean[];
}

let files: HandlerFiles;
let rows: readonly Row[];

beforeAll(async () => {
  const names = CASES.map((_, index) => `case-${index}.ts`);
  const sources = CASES.map(
    ({ given = "", type }) =>
      `${given}\n/** Takes one. */\nexport function take(value: ${type}, last?: boolean): void {}\n/** Gives one. */\nexport declare function give(): ${type};`,
  );
  files = await HandlerFiles.make(Object.fromEntries(names.map((name, index) => [name, sources[index] ?? ""])));
  const described = await files.describe(...names);
  const values = CASES.map(({ samples }) => [
    ...samples,
    ...fc.sample(mutants(samples), { numRuns: VALUES_PER_TYPE, seed: SEED }),
  ]);
  const verdicts = judge(
    CASES.map(({ given = "", type, judge: asked }, index) => ({
      given,
      type: typeof asked === "string" ? asked : type,
      values: values[index] ?? [],
    })),
  );
  rows = CASES.map(({ type, isMixedUnion = false }, index) => ({
    type,
    isMixedUnion,
    schema: described[index]?.handlers[0]?.inputSchema ?? {},
    output: described[index]?.handlers[1]?.outputSchema,
    values: values[index] ?? [],
    verdicts: verdicts[index] ?? [],
  }));
}, 120_000);
afterAll(() => files.remove());

describe("[004-R14.2] [004-R14.4] [004-R14.5] the schema takes exactly what the compiler takes", () => {
  test.each(CASES.map(({ type }, index) => ({ type, index })))("$type", ({ index }) => {
    const { schema, values, verdicts, isMixedUnion } = rows[index]!;
    const accepts = validator(schema);
    const acceptsOpen = validator(opened(schema));
    const differing = values.filter((value, at) => {
      const isAccepted = accepts({ value });
      if (isMixedUnion && verdicts[at] === true && !isAccepted) return !acceptsOpen({ value });
      return isAccepted !== verdicts[at];
    });
    expect(differing, `seed ${SEED}`).toEqual([]);
  });

  test.each(CASES.map(({ type }, index) => ({ type, index })))(
    "a result of the type $type is let through",
    ({ index }) => {
      const { output, values, verdicts } = rows[index]!;
      const accepts = output === undefined ? () => true : validator(output);
      expect(
        values.filter((value, at) => verdicts[at] === true && !accepts(value)),
        `seed ${SEED}`,
      ).toEqual([]);
    },
  );

  test("the values that were tried are of both kinds", () => {
    const all = rows.flatMap(({ verdicts }) => verdicts);
    expect(all.filter(Boolean).length).toBeGreaterThan(all.length / 10);
    expect(all.filter((verdict) => !verdict).length).toBeGreaterThan(all.length / 10);
  });
});

const ajv = new Ajv2020({ strict: false });
formats.default(ajv);

function validator(schema: JsonSchema): (value: unknown) => boolean {
  const validate = ajv.compile(schema);
  return (value) => validate(value);
}

/** Without the rule against unknown fields. */
function opened(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema).replaceAll('"additionalProperties":false', '"additionalProperties":true'));
}
