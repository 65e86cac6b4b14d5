import type { SchemaWriter } from "./type-to-schema.ts";
import { isRecord } from "../../platform/records.ts";
import type { JsonSchema } from "../../capability/schema.ts";
import type { Doc, DocTag } from "./doc-comment.ts";
import { parseLiteral } from "./literal-values.ts";
import type { TypeLocation } from "./type-location.ts";

interface Constraint {
  /** The JSON type that it applies to; undefined: any. */
  readonly type?: "number" | "string" | "array";
  readonly expected: string;
  /** Undefined when the text is not a value for this tag. */
  parse(text: string): unknown;
}

const NUMBER: Omit<Constraint, "type"> = { expected: "a number", parse: parseNumber };
const COUNT: Omit<Constraint, "type"> = {
  expected: "a whole number of 0 or more",
  parse: (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
};

const FORMATS =
  "date-time date time duration email hostname ipv4 ipv6 uri uri-reference uri-template uuid json-pointer relative-json-pointer regex byte int32 int64 float double password binary iso-time iso-date-time url";

const CONSTRAINTS: Readonly<Record<string, Constraint>> = {
  minimum: { type: "number", ...NUMBER },
  maximum: { type: "number", ...NUMBER },
  exclusiveMinimum: { type: "number", ...NUMBER },
  exclusiveMaximum: { type: "number", ...NUMBER },
  multipleOf: { type: "number", expected: "a number above 0", parse: (text) => positive(parseNumber(text)) },
  minLength: { type: "string", ...COUNT },
  maxLength: { type: "string", ...COUNT },
  pattern: { type: "string", expected: "a regular expression", parse: parsePattern },
  format: { type: "string", expected: `one of ${FORMATS.replaceAll(" ", ", ")}`, parse: parseFormat },
  minItems: { type: "array", ...COUNT },
  maxItems: { type: "array", ...COUNT },
  uniqueItems: { type: "array", expected: "true or false", parse: parseFlag },
};

/** Every tag that applies to one field. */
export const CONSTRAINT_TAGS: readonly string[] = [
  ...Object.keys(CONSTRAINTS),
  "integer",
  "default",
  "title",
  "deprecated",
  "example",
];

export function isConstraint(name: string): boolean {
  return CONSTRAINT_TAGS.includes(name);
}

/** Adds the doc comment of a field: its text, and the tags that JSON Schema has keywords for. */
export function documentedSchema(
  writer: Pick<SchemaWriter, "refuse">,
  { schema, doc, location }: { schema: JsonSchema; doc: Doc; location: TypeLocation },
): JsonSchema {
  const described = doc.text === "" ? schema : { ...schema, description: doc.text };
  return constrained(writer, { schema: described, tags: doc.tags, location });
}

export function constrained(
  writer: Pick<SchemaWriter, "refuse">,
  { schema, tags, location }: { schema: JsonSchema; tags: readonly DocTag[]; location: TypeLocation },
): JsonSchema {
  const result: Record<string, unknown> = { ...schema };
  for (const tag of tags) {
    const added = keywordsOf(result, tag);
    if (typeof added !== "string") Object.assign(result, added);
    else {
      const message = `@${tag.name} of ${location.path}: ${added}`;
      writer.refuse({ location, message, fix: "correct the tag or remove it" });
    }
  }
  return result;
}

/** The keywords of a tag, or an error message. */
function keywordsOf(schema: JsonSchema, { name, text }: DocTag): JsonSchema | string {
  const constraint = CONSTRAINTS[name];
  if (constraint === undefined) return annotationOf(schema, { name, text });
  const value = constraint.parse(text.trim());
  if (value === undefined) return `${JSON.stringify(text)} is not ${constraint.expected}`;
  const types = typesOf(schema);
  if (constraint.type !== undefined && types !== undefined && !types.has(constraint.type)) {
    return `it is for a ${constraint.type}, and the type is ${[...types].join(" or ")}`;
  }
  return { [name]: value };
}

function annotationOf(schema: JsonSchema, { name, text }: DocTag): JsonSchema | string {
  switch (name) {
    case "integer":
      return typesOf(schema)?.has("number") === true && schema["type"] === "number"
        ? { type: "integer" }
        : "it is for a number";
    case "title":
      return { title: text };
    case "deprecated":
      return { deprecated: true };
    case "default": {
      const value = valueOf(schema, text);
      return fits(schema, value) ? { default: value } : `${JSON.stringify(text)} does not fit the type`;
    }
    case "example": {
      const before: readonly unknown[] = Array.isArray(schema["examples"]) ? schema["examples"] : [];
      return { examples: [...before, valueOf(schema, text)] };
    }
    default:
      return {};
  }
}

/** Text needs no quotes in a field of type string. */
function valueOf(schema: JsonSchema, text: string): unknown {
  const value = parseLiteral(text);
  if (value !== undefined && fits(schema, value)) return value;
  return typesOf(schema)?.has("string") === false ? value : text;
}

function fits(schema: JsonSchema, value: unknown): boolean {
  const types = typesOf(schema);
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return types === undefined ? value !== undefined : types.has(type);
}

/** The JSON types that a schema allows; undefined when it does not restrict them. */
function typesOf(schema: JsonSchema): Set<string> | undefined {
  const { type } = schema;
  if (typeof type === "string") return new Set([type === "integer" ? "number" : type]);
  const branches: unknown = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(branches)) return undefined;
  const types = new Set<string>();
  for (const branch of branches) {
    const below = isRecord(branch) ? typesOf(branch) : undefined;
    if (below === undefined) return undefined;
    for (const name of below) types.add(name);
  }
  return types;
}

function parseNumber(text: string): number | undefined {
  const value = Number(text);
  return text !== "" && Number.isFinite(value) ? value : undefined;
}

function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}

function parseFlag(text: string): boolean | undefined {
  if (text === "" || text === "true") return true;
  return text === "false" ? false : undefined;
}

function parseFormat(text: string): string | undefined {
  return FORMATS.split(" ").includes(text) ? text : undefined;
}

/** With or without slashes. */
function parsePattern(text: string): string | undefined {
  const source = /^\/(.+)\/u?$/.exec(text)?.[1] ?? text;
  try {
    return new RegExp(source, "u").source === "(?:)" ? undefined : source;
  } catch {
    // Not a regular expression: the caller reports it.
    return undefined;
  }
}
