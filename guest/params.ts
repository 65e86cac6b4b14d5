import { BadParams } from "./failure.ts";

/** Reads the fields of a request one by one; what is not as agreed is refused with the field's name. */
export class ParamReader {
  readonly #fields: ReadonlyMap<string, unknown>;

  constructor(params: unknown) {
    if (!isRecord(params)) throw new BadParams("params must be an object");
    this.#fields = new Map(Object.entries(params));
  }

  text(name: string): string {
    return this.optionalText(name) ?? fail(name, "is missing");
  }

  optionalText(name: string): string | undefined {
    const value = this.#fields.get(name);
    if (value === undefined) return undefined;
    return typeof value === "string" ? value : fail(name, "must be a string");
  }

  integer(name: string): number {
    return this.optionalInteger(name) ?? fail(name, "is missing");
  }

  optionalInteger(name: string): number | undefined {
    const value = this.#fields.get(name);
    if (value === undefined) return undefined;
    const isValid = typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
    return isValid ? value : fail(name, "must be a whole number, 0 or more");
  }

  flag(name: string): boolean {
    const value = this.#fields.get(name);
    return typeof value === "boolean" ? value : fail(name, "must be true or false");
  }

  oneOf<const T extends string>(name: string, values: readonly T[]): T {
    const value = this.#fields.get(name);
    return values.find((allowed) => allowed === value) ?? fail(name, `must be one of ${values.join(", ")}`);
  }

  texts(name: string): string[] {
    const value: unknown = this.#fields.get(name);
    if (!Array.isArray(value)) return fail(name, "must be a list of strings");
    return value.map((item: unknown) => (typeof item === "string" ? item : fail(name, "must be a list of strings")));
  }

  optionalTextRecord(name: string): Record<string, string> | undefined {
    const value = this.#fields.get(name);
    if (value === undefined) return undefined;
    if (!isRecord(value)) return fail(name, "must be an object of strings");
    const entries = Object.entries(value).map(([key, item]): [string, string] =>
      typeof item === "string" ? [key, item] : fail(`${name}.${key}`, "must be a string"),
    );
    return Object.fromEntries(entries);
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fail(name: string, reason: string): never {
  throw new BadParams(`${name} ${reason}`);
}
