/** A copy of a value that came from JSON. Unlike `structuredClone`, it can be ended when it takes too long. */
export function copyJson(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyJson);
  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    if (name === "__proto__") Object.defineProperty(copy, name, { ...OWN, value: copyJson(member) });
    else copy[name] = copyJson(member);
  }
  return copy;
}

const OWN = { configurable: true, enumerable: true, writable: true };
