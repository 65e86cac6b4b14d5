import type { JsonSchema } from "./schema.ts";

/** What may stand in a place: JSON types, and single values. */
export interface Expected {
  readonly types: readonly string[];
  readonly values: readonly unknown[];
}

/** More of them would hide the rest of the message. */
const MAX_VALUES = 20;

/** What a schema says at its root; undefined when that is neither types nor values. */
export function expectedBy(schema: unknown): Expected | undefined {
  if (!isSchema(schema)) return undefined;
  const { enum: values, type } = schema;
  if ("const" in schema) return { types: [], values: [schema["const"]] };
  if (Array.isArray(values)) return { types: [], values };
  if (typeof type === "string") return { types: [type], values: [] };
  return Array.isArray(type) ? { types: type.filter((name) => typeof name === "string"), values: [] } : undefined;
}

export function together(all: readonly Expected[]): Expected {
  return {
    types: [...new Set(all.flatMap(({ types }) => types))],
    values: [...new Map(all.flatMap(({ values }) => values.map((value) => [JSON.stringify(value), value]))).values()],
  };
}

/** `must be string`, `must be one of "a", "b"`, `must be one of "a", "b", or number`. */
export function mustBe({ types, values }: Expected): string {
  const shown = values.slice(0, MAX_VALUES).map((value) => JSON.stringify(value));
  if (values.length > shown.length) shown.push(`… (${values.length} in all)`);
  if (shown.length === 0) return `must be ${orList(types)}`;
  if (shown.length === 1) return `must be ${orList([...shown, ...types])}`;
  return `must be one of ${shown.join(", ")}${types.length === 0 ? "" : `, or ${orList(types)}`}`;
}

export function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function orList(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1) ?? ""}`;
}

export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
