import type { ErrorObject } from "ajv/dist/2020.js";
import { isRecord } from "../platform/records.ts";
import type { JsonSchema, SchemaIssue } from "./schema.ts";

/** Bound the time and the length of an answer to a value with very many errors. */
const MAX_ERRORS = 2000;
const MAX_ISSUES = 20;
const MAX_VALUES = 20;

const EXAMPLES: Readonly<Record<string, string>> = {
  "date-time": "2026-07-28T12:00:00Z",
  date: "2026-07-28",
  time: "12:00:00Z",
  duration: "PT30M",
};

/** What a schema accepts: JSON types and single values. */
interface Expected {
  readonly types: readonly string[];
  readonly values: readonly unknown[];
}

/** One error. For a union there are findings of each member, of which only some are shown. */
interface Finding {
  /** JSON pointer to the value. */
  readonly at: string;
  /** The schema that has the rule. */
  readonly rule: unknown;
  readonly message: string;
  /** Set when the value has the wrong type or is none of the allowed values. */
  readonly expected?: Expected;
}

/** The validator's errors as messages that say what to write. The validator must run with `verbose`. */
export function toIssues(errors: readonly ErrorObject[], root: JsonSchema): readonly SchemaIssue[] {
  const found: Finding[] = [];
  for (const error of errors.slice(0, MAX_ERRORS)) {
    if (error.keyword !== "anyOf" && error.keyword !== "oneOf") {
      found.push(toFinding(error));
      continue;
    }
    const union = new UnionFailure(error, root);
    // The validator reports the errors of the members directly before the error of their union.
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
  if (typeof unknown === "string") return { at: childPointer(at, unknown), rule, message: "is unknown: remove it" };
  if (typeof missingProperty === "string")
    return { at: childPointer(at, missingProperty), rule, message: missing(error, missingProperty) };
  if (keyword === "format" && typeof format === "string" && EXAMPLES[format] !== undefined)
    return { at, rule, message: `${message}, such as ${EXAMPLES[format]}` };
  const expected = kindExpected(error);
  return expected === undefined
    ? { at, rule, message }
    : { at, rule, expected, message: mismatch(expected, error.data) };
}

function kindExpected({ keyword, schema: rule }: Pick<ErrorObject, "keyword" | "schema">): Expected | undefined {
  return keyword === "type" || keyword === "enum" || keyword === "const" ? expectedBy({ [keyword]: rule }) : undefined;
}

function missing({ parentSchema }: ErrorObject, name: string): string {
  const properties: unknown = parentSchema?.["properties"];
  const expected = isRecord(properties) ? expectedBy(properties[name]) : undefined;
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
  /** The schemas inside of it, without and with those that it refers to. */
  readonly own: ReadonlySet<unknown>;
  readonly all: ReadonlySet<unknown>;
}

/** Explains why a value fits no member of a union by the errors of the member that the caller most likely meant. */
class UnionFailure {
  readonly #error: ErrorObject;
  readonly #members: readonly Member[];

  constructor(error: ErrorObject, root: JsonSchema) {
    this.#error = error;
    this.#members = membersOf(error.schema, root);
  }

  /** Whether the finding belongs to a member of this union. */
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

  /** A member may contain the union itself, and so the other members too: the innermost one is the owner. */
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

  /** By a discriminating field: one that has different values in each member. */
  #byField(groups: readonly (readonly Finding[])[]): readonly Finding[] | undefined {
    const { instancePath, data } = this.#error;
    const members = this.#members.map(({ schema }) => schema);
    if (!isRecord(data)) return undefined;
    const field = Object.keys(propertiesOf(members[0])).find((name) => members.every((each) => valuesOf(each, name)));
    if (field === undefined) return undefined;
    const values = members.map((member) => valuesOf(member, field) ?? []);
    const meant = groups.filter((_, index) => values[index]?.includes(data[field]) === true);
    if (meant.length > 0) return meant.length === 1 ? meant[0] : undefined;
    const expected = mustBe(mergeExpected([{ types: [], values: values.flat() }]));
    const message = field in data ? expected : `is missing: ${expected}`;
    return [{ at: childPointer(instancePath, field), rule: undefined, message }];
  }

  /** By type: members of another type, or with another constant, are ruled out. */
  #byKind(groups: readonly (readonly Finding[])[]): readonly Finding[] {
    const { instancePath: at, data } = this.#error;
    const kinds = groups.map((group) => group.find((finding) => finding.at === at && finding.expected)?.expected);
    const meant = groups.filter((_, index) => kinds[index] === undefined);
    const [only = []] = meant;
    if (meant.length === 1) return only;
    if (meant.length === 0) {
      const expected = mergeExpected(kinds.filter((kind): kind is Expected => kind !== undefined));
      return [{ at, rule: undefined, expected, message: mismatch(expected, data) }];
    }
    const nearest = meant.reduce((best, group) => (group.length < best.length ? group : best));
    const message = `fits none of ${groups.length} allowed forms; the nearest one has these problems`;
    return [{ at, rule: undefined, message }, ...nearest];
  }
}

const membersOfUnion = new WeakMap<object, readonly Member[]>();

function membersOf(union: unknown, root: JsonSchema): readonly Member[] {
  if (!Array.isArray(union)) return [];
  let members = membersOfUnion.get(union);
  if (members === undefined) {
    members = union.map((member: unknown) => {
      const schema = resolved(member, root);
      return { schema, own: schemasIn(schema, undefined), all: schemasIn(schema, root) };
    });
    membersOfUnion.set(union, members);
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
  const name = isRecord(schema) && typeof schema["$ref"] === "string" ? schema["$ref"].replace("#/$defs/", "") : "";
  const definitions = root["$defs"];
  return isRecord(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : schema;
}

function propertiesOf(member: unknown): JsonSchema {
  const properties = isRecord(member) ? member["properties"] : undefined;
  return isRecord(properties) ? properties : {};
}

function valuesOf(member: unknown, field: string): readonly unknown[] | undefined {
  const values = expectedBy(propertiesOf(member)[field])?.values ?? [];
  return values.length === 0 ? undefined : values;
}

/** Undefined when the schema's root has neither types nor values. */
function expectedBy(schema: unknown): Expected | undefined {
  if (!isRecord(schema)) return undefined;
  const { enum: values, type } = schema;
  if ("const" in schema) return { types: [], values: [schema["const"]] };
  if (Array.isArray(values)) return { types: [], values };
  if (typeof type === "string") return { types: [type], values: [] };
  return Array.isArray(type) ? { types: type.filter((name) => typeof name === "string"), values: [] } : undefined;
}

function mergeExpected(all: readonly Expected[]): Expected {
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

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function orList(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1) ?? ""}`;
}

function mismatch(expected: Expected, value: unknown): string {
  return `${mustBe(expected)}${expected.values.length === 0 ? `, not ${typeName(value)}` : ""}`;
}

function childPointer(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
