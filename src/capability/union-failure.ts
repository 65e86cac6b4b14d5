import type { ErrorObject } from "ajv/dist/2020.js";
import { type Expected, expectedBy, isSchema, mustBe, together } from "./expected-value.ts";
import type { JsonSchema } from "./schema.ts";
import { childOf, type Finding, notThat } from "./schema-finding.ts";

interface Member {
  readonly schema: unknown;
  /** The schemas inside of it, with and without those that it refers to. */
  readonly own: ReadonlySet<unknown>;
  readonly all: ReadonlySet<unknown>;
}

/** A value that fits no member of a union: of all that is wrong, what is wrong with the member that was meant. */
export class UnionFailure {
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
