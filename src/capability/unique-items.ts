import type { FuncKeywordDefinition } from "ajv/dist/2020.js";

/**
 * `uniqueItems` in time that grows with the value and not with its square. The validator's own compares every item with every
 * other.
 */
export function uniqueItems(): FuncKeywordDefinition {
  const validate: NonNullable<FuncKeywordDefinition["validate"]> = (wanted: unknown, items: unknown): boolean => {
    if (wanted !== true || !Array.isArray(items)) return true;
    const double = firstDouble(items);
    if (double === undefined) return true;
    const { i, j } = double;
    validate.errors = [
      {
        keyword: "uniqueItems",
        params: { i, j },
        message: `must NOT have duplicate items (items ## ${j} and ${i} are identical)`,
      },
    ];
    return false;
  };
  return { keyword: "uniqueItems", type: "array", schemaType: "boolean", errors: true, validate };
}

function firstDouble(items: readonly unknown[]): { readonly i: number; readonly j: number } | undefined {
  const seen = new Map<string, number>();
  for (const [i, item] of items.entries()) {
    const text = canonical(item);
    const j = seen.get(text);
    if (j !== undefined) return { i, j };
    seen.set(text, i);
  }
  return undefined;
}

/** The same text for values that JSON Schema calls equal: the order of members does not count. */
function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "undefined";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
}
