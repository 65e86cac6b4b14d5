import { Environment } from "@marcbachmann/cel-js";
import { withinTime } from "../../platform/within-time.ts";
import { costOf, stepsOf } from "./expression-cost.ts";

/** The variables of an expression. */
export interface Facts {
  /** With every path of a built-in tool in its normalized form. */
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
  /** The same facts, for measuring. When reads of facts are recorded, measuring must not be recorded as a read. */
  readonly measured: Facts;
}

/** @throws when the evaluation fails or exceeds its time limit. */
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

/** Whether a valid expression reads the variable `label`. A field or a string with that name does not count. */
export function looksAtLabel(text: string): boolean {
  return !withoutLabel.parse(text).check().valid;
}

/**
 * Throws when the text is not valid: an expression that cannot be true or false is rejected when the policy is read.
 */
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

/**
 * An evaluation with more steps may take some milliseconds and runs under a time limit, which itself costs a part of a
 * millisecond.
 */
const QUICK_STEPS = 2000;
