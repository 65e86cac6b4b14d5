/** Whether a value is an object with members: not null, and no array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy without the members that are undefined. */
export function withoutUndefined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const kept: { [Name in keyof T]?: Exclude<T[Name], undefined> } = {};
  return Object.assign(kept, Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
}
