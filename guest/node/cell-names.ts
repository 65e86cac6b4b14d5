export type NameKind = "const" | "let" | "var";

/** The top-level declarations of one cell. */
export type DeclaredNames = ReadonlyMap<string, NameKind>;

/** Cells assign to constants through this object. */
export const CONSTANTS_NAME = "__owlclawConstants";

/**
 * The top-level names of all cells. They are global properties, so that the next cell can use and redeclare them. `const` and
 * `let` keep their rules: no use before the declaration, and no assignment to a constant.
 */
export class CellNames {
  readonly #global: object;
  /** Declarations of the running cell that it has not reached, with their previous values. */
  readonly #hidden = new Map<string, PropertyDescriptor | undefined>();

  constructor(globalObject: object) {
    this.#global = globalObject;
    Object.defineProperty(globalObject, CONSTANTS_NAME, { value: this.#assignedThrough(), configurable: true });
  }

  isConstant(name: string): boolean {
    const found = Object.getOwnPropertyDescriptor(this.#global, name);
    return found?.writable === false && found.configurable === true;
  }

  /** Called before the cell runs. */
  open(declared: DeclaredNames): void {
    for (const [name, kind] of declared) {
      const before = Object.getOwnPropertyDescriptor(this.#global, name);
      // A function that an earlier script declared cannot be removed; it can be assigned.
      if (before?.configurable === false) continue;
      if (kind !== "var") {
        this.#hidden.set(name, before);
        this.#hideUntilSet(name, kind);
      } else if (before === undefined || this.isConstant(name)) {
        this.#define(name, { value: before?.value, writable: true });
      }
    }
  }

  /** Called after the cell ran: a declaration that was not reached has no effect. */
  close(): void {
    for (const [name, before] of this.#hidden) {
      Reflect.deleteProperty(this.#global, name);
      if (before !== undefined) Object.defineProperty(this.#global, name, before);
    }
    this.#hidden.clear();
  }

  #hideUntilSet(name: string, kind: NameKind): void {
    const get = (): never => {
      const error = new ReferenceError(`Cannot access '${name}' before initialization`);
      Error.captureStackTrace(error, get);
      throw error;
    };
    // A property with a value is as fast as a variable; one with a getter is slower.
    const set = (value: unknown): void => {
      this.#hidden.delete(name);
      this.#define(name, { value, writable: kind !== "const" });
    };
    Object.defineProperty(this.#global, name, { get, set, configurable: true, enumerable: true });
  }

  #define(name: string, { value, writable }: { value: unknown; writable: boolean }): void {
    Object.defineProperty(this.#global, name, { value, writable, configurable: true, enumerable: true });
  }

  /** In sloppy mode an assignment to a constant would be ignored without an error. */
  #assignedThrough(): object {
    const set = (_target: object, name: string | symbol, value: unknown): boolean => {
      if (!this.isConstant(String(name))) return Reflect.set(this.#global, name, value);
      const error = new TypeError("Assignment to constant variable.");
      Error.captureStackTrace(error, set);
      throw error;
    };
    return new Proxy({}, { get: (_target, name): unknown => Reflect.get(this.#global, name), set });
  }
}
