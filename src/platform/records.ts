/** Whether a value is an object with members: not null, and no array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type WithoutUndefined<T> = { [Name in keyof T as undefined extends T[Name] ? never : Name]: T[Name] } & {
  [Name in keyof T as undefined extends T[Name] ? Name : never]?: Exclude<T[Name], undefined>;
};

/** A copy without the members that are undefined. */
export function withoutUndefined<const T extends object>(fields: T): WithoutUndefined<T> {
  // oxlint-disable-next-line typescript/consistent-type-assertions -- the type says the same as the filter
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as WithoutUndefined<T>;
}
