import { Environment } from "@marcbachmann/cel-js";

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
  return (facts) => {
    const value: unknown = parsed(facts);
    if (typeof value !== "boolean") throw new TypeError(`it gave ${typeof value}, and must give true or false`);
    return value;
  };
}
