import type { ErrorObject } from "ajv/dist/2020.js";
import { type Expected, expectedBy, isSchema, mustBe } from "./expected-value.ts";
import { childOf, type Finding, notThat } from "./schema-finding.ts";
import type { JsonSchema, SchemaIssue } from "./schema.ts";
import { UnionFailure } from "./union-failure.ts";

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
