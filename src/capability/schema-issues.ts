import type { ErrorObject } from "ajv/dist/2020.js";
import type { JsonSchema, SchemaIssue } from "./schema.ts";

/** A caller who sends a million wrong items gets no million sentences back, nor the time that they take. */
const MAX_ERRORS = 2000;
const MAX_ISSUES = 20;

const EXAMPLES: Readonly<Record<string, string>> = {
  "date-time": "2026-07-28T12:00:00Z",
  date: "2026-07-28",
  time: "12:00:00Z",
  duration: "PT30M",
};

/** The validator's errors in words that say what to write. It must keep values and schemas in them (`verbose`). */
export function toIssues(errors: readonly ErrorObject[], root: JsonSchema): readonly SchemaIssue[] {
  const found: Finding[] = [];
  for (const error of errors.slice(0, MAX_ERRORS)) {
    if (error.keyword !== "anyOf" && error.keyword !== "oneOf") {
      found.push(toFinding(error));
      continue;
    }
    const union = new UnionFailure(error, root);
    // What the validator says of the members stands right before what it says of their union.
    let first = found.length;
    while (first > 0 && union.holds(found[first - 1])) first -= 1;
    found.push(...union.explain(found.splice(first)));
  }
  const issues = found.slice(0, MAX_ISSUES).map(({ at, message }) => ({ path: toPath(at), message }));
  const isCut = found.length > issues.length || errors.length > MAX_ERRORS;
  return isCut ? [...issues, { path: "", message: "and more of the same kind" }] : issues;
}

function toFinding(error: ErrorObject): Finding {
  const { keyword, instancePath: at, parentSchema: rule, params, message = keyword } = error;
  const { missingProperty, additionalProperty, unevaluatedProperty, format }: Record<string, unknown> = params;
  const unknown = additionalProperty ?? unevaluatedProperty;
  if (typeof unknown === "string") return { at: childOf(at, unknown), rule, message: "is unknown: remove it" };
  if (typeof missingProperty === "string")
    return { at: childOf(at, missingProperty), rule, message: missing(error, missingProperty) };
  if (keyword === "format" && typeof format === "string" && EXAMPLES[format] !== undefined)
    return { at, rule, message: `${message}, such as ${EXAMPLES[format]}` };
  const expected = kindExpected(error);
  return expected === undefined
    ? { at, rule, message }
    : { at, rule, expected, message: notThat(expected, error.data) };
}

function kindExpected({
  keyword,
  schema: rule,
}: {
  readonly keyword: string;
  readonly schema?: unknown;
}): Expected | undefined {
  return keyword === "type" || keyword === "enum" || keyword === "const" ? expectedBy({ [keyword]: rule }) : undefined;
}

function missing({ parentSchema }: ErrorObject, name: string): string {
  const properties: unknown = parentSchema?.["properties"];
  const expected = isSchema(properties) ? expectedBy(properties[name]) : undefined;
  return expected === undefined ? "is missing" : `is missing: ${mustBe(expected)}`;
}

/** `/items/0/name` as `items[0].name`. */
function toPath(pointer: string): string {
  let path = "";
  for (const segment of pointer.split("/").slice(1)) {
    const name = segment.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(name)) path += `[${name}]`;
    else path += path === "" ? name : `.${name}`;
  }
  return path;
}

interface Member {
  readonly schema: unknown;
  /** The schemas inside of it, with and without those that it refers to. */
  readonly own: ReadonlySet<unknown>;
  readonly all: ReadonlySet<unknown>;
}

/** A value that fits no member of a union: of all that is wrong, what is wrong with the member that was meant. */
class UnionFailure {
  readonly #error: ErrorObject;
  readonly #members: readonly Member[];

  constructor(error: ErrorObject, root: JsonSchema) {
    this.#error = error;
    this.#members = membersOf(error.schema, root);
  }

  /** Whether it is about a member of this union. */
  holds(finding: Finding | undefined): boolean {
    const { instancePath } = this.#error;
    if (finding === undefined || !`${finding.at}/`.startsWith(`${instancePath}/`)) return false;
    return this.#members.some(({ all }) => all.has(finding.rule));
  }

  explain(below: readonly Finding[]): readonly Finding[] {
    const { instancePath: at, parentSchema: rule, keyword, params, message = keyword } = this.#error;
    const itself: Finding = { at, rule, message };
    const { passingSchemas }: Record<string, unknown> = params;
    if (Array.isArray(passingSchemas)) return [itself];
    const groups = this.#grouped(below);
    if (groups.some(({ length }) => length === 0)) return [...below, itself];
    return (this.#byField(groups) ?? this.#byKind(groups)).map((finding) => ({ ...finding, rule }));
  }

  #grouped(below: readonly Finding[]): readonly (readonly Finding[])[] {
    const owners = below.map(({ rule }) => this.#ownerOf(rule));
    return this.#members.map((_, index) => below.filter((_finding, at) => owners[at] === index));
  }

  /** A member may hold the union itself, and so the other members too: the nearest one counts. */
  #ownerOf(rule: unknown): number {
    const ways = [
      ({ schema }: Member) => schema === rule,
      ({ own }: Member) => own.has(rule),
      ({ all }: Member) => all.has(rule),
    ];
    for (const way of ways) {
      const index = this.#members.findIndex(way);
      if (index !== -1) return index;
    }
    return -1;
  }

  /** Where one field has other values in each member, it says which one was meant. */
  #byField(groups: readonly (readonly Finding[])[]): readonly Finding[] | undefined {
    const { instancePath, data } = this.#error;
    const members = this.#members.map(({ schema }) => schema);
    if (!isSchema(data)) return undefined;
    const field = Object.keys(propertiesOf(members[0])).find((name) => members.every((each) => valuesOf(each, name)));
    if (field === undefined) return undefined;
    const values = members.map((member) => valuesOf(member, field) ?? []);
    const meant = groups.filter((_, index) => values[index]?.includes(data[field]) === true);
    if (meant.length > 0) return meant.length === 1 ? meant[0] : undefined;
    const expected = mustBe(together([{ types: [], values: values.flat() }]));
    const message = field in data ? expected : `is missing: ${expected}`;
    return [{ at: childOf(instancePath, field), rule: undefined, message }];
  }

  /** A member of another type, or with another value, was not meant. */
  #byKind(groups: readonly (readonly Finding[])[]): readonly Finding[] {
    const { instancePath: at, data } = this.#error;
    const kinds = groups.map((group) => group.find((finding) => finding.at === at && finding.expected)?.expected);
    const meant = groups.filter((_, index) => kinds[index] === undefined);
    const [only = []] = meant;
    if (meant.length === 1) return only;
    if (meant.length === 0) {
      const expected = together(kinds.filter((kind): kind is Expected => kind !== undefined));
      return [{ at, rule: undefined, expected, message: notThat(expected, data) }];
    }
    const nearest = meant.reduce((best, group) => (group.length < best.length ? group : best));
    const message = `fits none of ${groups.length} allowed forms; the nearest one has these problems`;
    return [{ at, rule: undefined, message }, ...nearest];
  }
}

const known = new WeakMap<object, readonly Member[]>();

function membersOf(union: unknown, root: JsonSchema): readonly Member[] {
  if (!Array.isArray(union)) return [];
  let members = known.get(union);
  if (members === undefined) {
    members = union.map((member: unknown) => {
      const schema = resolved(member, root);
      return { schema, own: schemasIn(schema, undefined), all: schemasIn(schema, root) };
    });
    known.set(union, members);
  }
  return members;
}

/** Every schema inside of one; with a root, also inside of what it refers to. */
function schemasIn(
  schema: unknown,
  root: JsonSchema | undefined,
  found: Set<unknown> = new Set(),
): ReadonlySet<unknown> {
  if (typeof schema !== "object" || schema === null || found.has(schema)) return found;
  found.add(schema);
  for (const below of Object.values(schema)) schemasIn(below, root, found);
  if (root !== undefined) schemasIn(resolved(schema, root), root, found);
  return found;
}

function resolved(schema: unknown, root: JsonSchema): unknown {
  const name = isSchema(schema) && typeof schema["$ref"] === "string" ? schema["$ref"].replace("#/$defs/", "") : "";
  const definitions = root["$defs"];
  return isSchema(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : schema;
}

function propertiesOf(member: unknown): JsonSchema {
  const properties = isSchema(member) ? member["properties"] : undefined;
  return isSchema(properties) ? properties : {};
}

function valuesOf(member: unknown, field: string): readonly unknown[] | undefined {
  const values = expectedBy(propertiesOf(member)[field])?.values ?? [];
  return values.length === 0 ? undefined : values;
}

/** What may stand in a place: JSON types, and single values. */
export interface Expected {
  readonly types: readonly string[];
  readonly values: readonly unknown[];
}

/** More of them would hide the rest of the message. */
const MAX_VALUES = 20;

/** What a schema says at its root; undefined when that is neither types nor values. */
function expectedBy(schema: unknown): Expected | undefined {
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
function mustBe({ types, values }: Expected): string {
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

/** One thing that is wrong, before it is known whether it matters: a union has such for each of its members. */
export interface Finding {
  /** JSON pointer to the value. */
  readonly at: string;
  /** The schema that has the rule. */
  readonly rule: unknown;
  readonly message: string;
  /** When the value is of another kind altogether. */
  readonly expected?: Expected;
}

/** Where a value is expected, the caller's own need not be repeated; where a type is, the wrong one helps. */
function notThat(expected: Expected, value: unknown): string {
  return `${mustBe(expected)}${expected.values.length === 0 ? `, not ${typeName(value)}` : ""}`;
}

function childOf(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
