import { JsonSchemaChecker } from "./json-schema-checker.ts";
import { assertSafePatterns } from "./schema-patterns.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The part of Standard Schema (and its JSON Schema side) that we use: zod 4.2+, ArkType, Valibot and others have it. */
export interface SchemaLibrary<Output = unknown> {
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

/** What may stand as `input` or `output` of a definition: a schema of a library, or JSON Schema itself. */
export type SchemaSource<Value = unknown> = SchemaLibrary<Value> | JsonSchema;

export type SchemaValue<S> = S extends SchemaLibrary<infer Value> ? Value : Record<string, unknown>;

export interface SchemaIssue {
  /** Where, as in `items[0].name`; empty for the whole value. */
  readonly path: string;
  readonly message: string;
}

export type SchemaVerdict =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly SchemaIssue[] };

/** A schema ready for use: what clients see, and a function that checks. */
export interface CompiledSchema {
  readonly json: JsonSchema;
  check(value: unknown): SchemaVerdict | Promise<SchemaVerdict>;
}

const TARGET = "draft-2020-12";

export function compileSchema(source: SchemaSource, side: "input" | "output"): CompiledSchema {
  return isSchemaLibrary(source) ? fromLibrary(source, side) : fromJsonSchema(source);
}

/** A schema that clients see, and whose values are checked elsewhere. */
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
