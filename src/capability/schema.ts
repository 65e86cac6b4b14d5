import { isRecord } from "../platform/records.ts";
import { JsonSchemaChecker } from "./json-schema-checker.ts";
import { isLinear } from "../config/redact-rule.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The part of Standard Schema and Standard JSON Schema that is used here: zod 4.2+, ArkType, Valibot and others have it. */
interface SchemaLibrary<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: string }) => Record<string, unknown>;
      readonly output: (options: { readonly target: string }) => Record<string, unknown>;
    };
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** `input` or `output` of a definition: a schema of a library, or a JSON Schema. */
export type SchemaSource<Value = unknown> = SchemaLibrary<Value> | JsonSchema;

export type SchemaValue<S> = S extends SchemaLibrary<infer Value> ? Value : Record<string, unknown>;

export interface SchemaIssue {
  /** `items[0].name`; empty for the whole value. */
  readonly path: string;
  readonly message: string;
}

export type SchemaVerdict =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly SchemaIssue[] };

/** A schema as clients see it, and the function that checks values against it. */
export interface CompiledSchema {
  readonly json: JsonSchema;
  check(value: unknown): SchemaVerdict | Promise<SchemaVerdict>;
}

const TARGET = "draft-2020-12";

/** Keywords whose value is data and holds no schemas. */
const DATA = new Set(["const", "enum", "default", "examples", "example"]);

/** Keywords whose value has a schema under each name. */
const NAMED = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

/** A list with a separator, such as `(?:-[a-z0-9]+)*`: safe, because each part begins with a character that no part contains. */
const SEPARATED = /\((?:\?:)?(\\[-./_]|[-_/,:;@ ])(\\[dw]|\[[^\]\\]*\]|\[(?:[^\]\\]|\\[dws.-])*\])\+?\)[*+]/gu;

export function compileSchema(source: SchemaSource, side: "input" | "output"): CompiledSchema {
  return isSchemaLibrary(source) ? fromLibrary(source, side) : fromJsonSchema(source);
}

/** A schema that clients see and that accepts every value: another process checks. */
export function shownSchema(json: JsonSchema): SchemaLibrary {
  const show = (): Record<string, unknown> => json;
  return {
    "~standard": {
      version: 1,
      vendor: "shown",
      validate: (value) => ({ value }),
      jsonSchema: { input: show, output: show },
    },
  };
}

export function isSchemaLibrary(source: unknown): source is SchemaLibrary {
  return (typeof source === "object" || typeof source === "function") && source !== null && "~standard" in source;
}

function fromLibrary(source: SchemaLibrary, side: "input" | "output"): CompiledSchema {
  const standard = source["~standard"];
  const converter = standard.jsonSchema?.[side];
  if (converter === undefined) {
    throw new TypeError(
      `the schema library "${standard.vendor}" cannot show its schemas as JSON Schema; use zod 4.2 or later, or give a JSON Schema object`,
    );
  }
  return {
    json: converter({ target: TARGET }),
    check(value) {
      const result = standard.validate(value);
      return result instanceof Promise ? result.then(fromStandard) : fromStandard(result);
    },
  };
}

function fromStandard(result: StandardResult<unknown>): SchemaVerdict {
  if (result.issues === undefined) return { ok: true, value: result.value };
  return { ok: false, issues: result.issues.map(({ message, path }) => ({ message, path: formatPath(path ?? []) })) };
}

function formatPath(path: NonNullable<StandardIssue["path"]>): string {
  let text = "";
  for (const segment of path) {
    const key = typeof segment === "object" ? segment.key : segment;
    if (typeof key === "number") text += `[${key}]`;
    else text += text === "" ? String(key) : `.${String(key)}`;
  }
  return text;
}

function fromJsonSchema(json: JsonSchema): CompiledSchema {
  assertSafePatterns(json);
  const checker = new JsonSchemaChecker(json);
  return { json, check: (value) => checker.check(value) };
}

/**
 * Rejects patterns with catastrophic backtracking: callers choose the texts that patterns are matched with.
 *
 * @throws TypeError that names the pattern and its position.
 */
function assertSafePatterns(schema: JsonSchema): void {
  walk(schema, "");
}

function walk(schema: unknown, at: string): void {
  if (typeof schema !== "object" || schema === null) return;
  for (const [keyword, value] of Object.entries(schema)) {
    if (DATA.has(keyword)) continue;
    const here = `${at}/${keyword}`;
    if (keyword === "pattern" && typeof value === "string") assertSafe(value, here);
    if (NAMED.has(keyword) && isRecord(value)) {
      for (const [name, below] of Object.entries(value)) {
        if (keyword === "patternProperties") assertSafe(name, here);
        walk(below, `${here}/${name}`);
      }
    } else walk(value, here);
  }
}

function assertSafe(pattern: string, at: string): void {
  if (isSafePattern(pattern)) return;
  throw new TypeError(
    `the pattern ${JSON.stringify(pattern)} at ${at.slice(1)} can take exponential time: write it without a repetition or alternative inside a repeated group, without back references, and with at most three repetitions`,
  );
}

function isSafePattern(pattern: string): boolean {
  return isLinear(
    pattern.replaceAll(SEPARATED, (whole, separator: string, part: string) =>
      new RegExp(`^${part}$`, "u").test(separator.at(-1) ?? "") ? whole : "(?:a)*",
    ),
  );
}
