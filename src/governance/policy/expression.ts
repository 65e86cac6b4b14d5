import { Environment } from "@marcbachmann/cel-js";
import { withinTime } from "../../platform/within-time.ts";
import { costOf, stepsOf } from "./expression-cost.ts";

/** What an expression can look at. */
export interface Facts {
  /** With every path of a built-in tool in its one form. */
  readonly args: Readonly<Record<string, unknown>>;
  /** As the caller wrote them. */
  readonly sent: Readonly<Record<string, unknown>>;
  readonly principal: string;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly groups: readonly string[];
  readonly label: string;
  readonly tool: string;
  readonly scope: string;
  readonly kind: string;
  readonly uri: string;
}

export interface EvaluationLimits {
  readonly limitMs: number;
  /** The same facts, for measuring: where looks at facts are recorded, measuring them must not count as a look. */
  readonly measured: Facts;
}

/** @throws when it cannot be worked out, or not within its time. */
export type Expression = (facts: Facts, limits: EvaluationLimits) => boolean;

const withoutLabel = new Environment({
  unlistedVariablesAreDyn: false,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 2000, maxDepth: 100, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 20 },
})
  .registerVariable("args", "map<string, dyn>")
  .registerVariable("sent", "map<string, dyn>")
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
  const cost = costOf(text);
  return (facts, { limitMs, measured }) => {
    const evaluate = (): unknown => parsed(facts);
    const isQuick = stepsOf(cost, measured) <= QUICK_STEPS;
    const value = isQuick ? evaluate() : withinTime(limitMs, evaluate);
    if (typeof value !== "boolean") throw new TypeError(`it gave ${typeof value}, and must give true or false`);
    return value;
  };
}

/** What takes more than some milliseconds is watched; to watch it costs a part of one. */
const QUICK_STEPS = 2000;
