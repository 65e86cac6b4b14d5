import { type Expected, mustBe, typeName } from "./expected-value.ts";

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
export function notThat(expected: Expected, value: unknown): string {
  return `${mustBe(expected)}${expected.values.length === 0 ? `, not ${typeName(value)}` : ""}`;
}

export function childOf(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
