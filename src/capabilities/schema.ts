import { createRequire } from "node:module";
import type * as formatsModule from "ajv-formats";
import type * as ajvModule from "ajv/dist/2020.js";
import type { Ajv2020, ValidateFunction } from "ajv/dist/2020.js";
import { toIssues } from "./schema-issues.ts";

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
  let validate: ValidateFunction | undefined;
  const hasDefaults = JSON.stringify(json).includes('"default"');
  return {
    json,
    check(sent) {
      validate ??= ajv().compile(json);
      // Defaults are filled in where they are missing, which must not change what the caller sent.
      const value: unknown = hasDefaults ? structuredClone(sent) : sent;
      if (validate(value)) return { ok: true, value };
      return { ok: false, issues: toIssues(validate.errors ?? [], json) };
    },
  };
}

let shared: Ajv2020 | undefined;

/** Loaded when the first plain JSON Schema is checked: the validator would take a tenth of every start. */
function ajv(): Ajv2020 {
  if (shared === undefined) {
    const load: (name: string) => unknown = createRequire(import.meta.url);
    const validators = load("ajv/dist/2020.js");
    const formats = load("ajv-formats");
    if (!isAjvModule(validators) || !isFormatsModule(formats))
      throw new Error("the JSON Schema validator is not what it was");
    shared = new validators.Ajv2020({ allErrors: true, strict: false, useDefaults: true, verbose: true });
    formats.default(shared);
  }
  return shared;
}

function isAjvModule(value: unknown): value is typeof ajvModule {
  return typeof value === "function" && "Ajv2020" in value;
}

function isFormatsModule(value: unknown): value is typeof formatsModule.default {
  return typeof value === "function" && "default" in value;
}
