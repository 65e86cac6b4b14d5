import { Environment } from "@marcbachmann/cel-js";
import { isLinear } from "../../config/redact-rule.ts";

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

const environment = new Environment({
  unlistedVariablesAreDyn: false,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 2000, maxDepth: 100, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 20 },
})
  .registerVariable("args", "map<string, dyn>")
  .registerVariable("principal", "string")
  .registerVariable("claims", "map<string, dyn>")
  .registerVariable("groups", "list<string>")
  .registerVariable("label", "string")
  .registerVariable("tool", "string")
  .registerVariable("scope", "string")
  .registerVariable("kind", "string")
  .registerVariable("uri", "string");

/** Throws what is wrong with the text: an expression that cannot be true or false is refused when it is read. */
export function compileExpression(text: string): Expression {
  const parsed = environment.parse(text);
  const { valid, type, error } = parsed.check();
  if (!valid) throw error ?? new TypeError("it cannot be checked");
  if (type !== "bool" && type !== "dyn")
    throw new TypeError(`it gives ${type ?? "nothing"}, and must give true or false`);
  const isMatching = assertQuickPatterns(text);
  return (facts) => {
    if (isMatching) assertShort(facts.args);
    const value: unknown = parsed(facts);
    if (typeof value !== "boolean") throw new TypeError(`it gave ${typeof value}, and must give true or false`);
    return value;
  };
}

const MATCHES_CALL = /\.\s*matches\s*\(/g;
const MATCHES_LITERAL = /\.\s*matches\s*\(\s*(r?)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\)/g;

/** Callers choose the texts, so a pattern must be one that no text keeps busy. Whether there is any. */
function assertQuickPatterns(text: string): boolean {
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
  return calls > 0;
}

/** The time of a pattern still grows faster than the text. */
const MAX_MATCHED_CHARS = 10_000;

function assertShort(value: unknown): void {
  if (typeof value === "string" && value.length > MAX_MATCHED_CHARS)
    throw new TypeError(
      `a text of ${value.length} characters is too long for matches(), which takes ${MAX_MATCHED_CHARS}`,
    );
  if (typeof value === "object" && value !== null) for (const item of Object.values(value)) assertShort(item);
}
