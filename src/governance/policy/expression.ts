import { Environment } from "@marcbachmann/cel-js";
import { isLinear } from "../../config/redact-rule.ts";
import { withinTime } from "./within-time.ts";

/** What an expression can look at. */
export interface Facts {
  readonly args: Readonly<Record<string, unknown>>;
  readonly principal: string;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly groups: readonly string[];
  readonly label: string;
  readonly tool: string;
  readonly scope: string;
  readonly kind: string;
  readonly uri: string;
}

export type Expression = (facts: Facts) => boolean;

const withoutLabel = new Environment({
  unlistedVariablesAreDyn: false,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 2000, maxDepth: 100, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 20 },
})
  .registerVariable("args", "map<string, dyn>")
  .registerVariable("principal", "string")
  .registerVariable("claims", "map<string, dyn>")
  .registerVariable("groups", "list<string>")
  .registerVariable("tool", "string")
  .registerVariable("scope", "string")
  .registerVariable("kind", "string")
  .registerVariable("uri", "string");
const environment = withoutLabel.clone().registerVariable("label", "string");

/** Whether a valid expression looks at the label: a field or a text of that name is another thing. */
export function looksAtLabel(text: string): boolean {
  return !withoutLabel.parse(text).check().valid;
}

/** Throws what is wrong with the text: an expression that cannot be true or false is refused when it is read. */
export function compileExpression(text: string): Expression {
  const parsed = environment.parse(text);
  const { valid, type, error } = parsed.check();
  if (!valid) throw error ?? new TypeError("it cannot be checked");
  if (type !== "bool" && type !== "dyn")
    throw new TypeError(`it gives ${type ?? "nothing"}, and must give true or false`);
  const degree = assertQuickPatterns(text);
  const named = (name: string): boolean => new RegExp(`\\b${name}\\b`).test(text);
  const counted = degree === 0 ? [] : COUNTED.filter(named);
  const uncounted = degree > 0 && named("claims") ? Infinity : 0;
  return (facts) => {
    const steps = counted.reduce((sum, name) => sum + stepsOf(facts[name], degree), uncounted);
    const value: unknown = steps > QUICK_STEPS ? withinTime(LONGEST_MS, () => parsed(facts)) : parsed(facts);
    if (typeof value !== "boolean") throw new TypeError(`it gave ${typeof value}, and must give true or false`);
    return value;
  };
}

const MATCHES_CALL = /\.\s*matches\s*\(/g;
const MATCHES_LITERAL = /\.\s*matches\s*\(\s*(r?)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\)/g;

/**
 * Callers choose the texts, so a pattern must be one that no text keeps busy for ever. How fast its time grows with the
 * text: the text's length to this power; 0 where there is no pattern.
 */
function assertQuickPatterns(text: string): number {
  const calls = text.match(MATCHES_CALL)?.length ?? 0;
  const literals = [...text.matchAll(MATCHES_LITERAL)];
  if (literals.length < calls) throw new TypeError("matches() takes a pattern that is written out, in quotes");
  for (const [, raw, quoted = ""] of literals) {
    const inner = quoted.slice(1, -1);
    if (isLinear(raw === "" ? inner.replaceAll(/\\(.)/g, "$1") : inner)) continue;
    throw new TypeError(
      `the pattern ${quoted} could take for ever on a text made for it: no repetition or alternative inside a repeated group, and at most three repetitions`,
    );
  }
  return Math.max(0, ...literals.map(([, , quoted = ""]) => 1 + (quoted.match(/[*+?{]/g)?.length ?? 0)));
}

/** All that holds texts but claims: to look at those is to depend on them, and `policy replay` would have to say so. */
const COUNTED: readonly (keyof Facts)[] = ["args", "principal", "groups", "label", "tool", "uri"];
const MAX_MATCHED_CHARS = 10_000;
/** What takes more than some milliseconds is watched; to watch it costs a part of one. */
const QUICK_STEPS = 1_000_000;
/** Three repetitions over 10,000 characters would take days, and the server does nothing else meanwhile. */
const LONGEST_MS = 500;

/** The most steps that a pattern of this degree may take over the texts, keys among them. @throws TypeError when one is too long. */
function stepsOf(value: unknown, degree: number): number {
  if (typeof value === "string") {
    if (value.length <= MAX_MATCHED_CHARS) return value.length ** degree;
    throw new TypeError(
      `a text of ${value.length} characters is too long for matches(), which takes ${MAX_MATCHED_CHARS}`,
    );
  }
  if (typeof value !== "object" || value === null) return 0;
  let steps = 0;
  for (const [key, item] of Object.entries(value)) steps += stepsOf(key, degree) + stepsOf(item, degree);
  return steps;
}
