import { isLinear } from "../config/redact-rule.ts";
import type { JsonSchema } from "./schema.ts";

/** Keywords whose value is data, in which nothing is a schema. */
const DATA = new Set(["const", "enum", "default", "examples", "example"]);
/** Keywords whose value has a schema under each name. */
const NAMED = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);
/** A list with a separator, such as `(?:-[a-z0-9]+)*`: each part begins with what no part may hold. */
const SEPARATED = /\((?:\?:)?(\\[-./_]|[-_/,:;@ ])(\\[dw]|\[[^\]\\]*\]|\[(?:[^\]\\]|\\[dws.-])*\])\+?\)[*+]/gu;

/**
 * Callers choose the texts that patterns are matched with, so a pattern must be one that no text keeps busy for ever.
 *
 * @throws TypeError that names the pattern and where it stands.
 */
export function assertSafePatterns(schema: JsonSchema): void {
  walk(schema, "");
}

function walk(schema: unknown, at: string): void {
  if (!isObject(schema)) return;
  for (const [keyword, value] of Object.entries(schema)) {
    if (DATA.has(keyword)) continue;
    const here = `${at}/${keyword}`;
    if (keyword === "pattern" && typeof value === "string") assertSafe(value, here);
    if (NAMED.has(keyword) && isObject(value)) {
      for (const [name, below] of Object.entries(value)) {
        if (keyword === "patternProperties") assertSafe(name, here);
        walk(below, `${here}/${name}`);
      }
    } else walk(value, here);
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function assertSafe(pattern: string, at: string): void {
  if (isSafePattern(pattern)) return;
  throw new TypeError(
    `the pattern ${JSON.stringify(pattern)} at ${at.slice(1)} could take for ever on a text made for it: write it without a repetition or alternative inside a repeated group, without back references, and with at most three repetitions`,
  );
}

export function isSafePattern(pattern: string): boolean {
  return isLinear(
    pattern.replaceAll(SEPARATED, (whole, separator: string, part: string) =>
      new RegExp(`^${part}$`, "u").test(separator.at(-1) ?? "") ? whole : "(?:a)*",
    ),
  );
}
