export type NameKind = "const" | "let" | "var";

/** What the code of one cell declares at its top. */
export type DeclaredNames = ReadonlyMap<string, NameKind>;

/** Through it cells assign to names that are constants. */
export const CONSTANTS_NAME = "__owlclawConstants";

/**
 * The top-level names of all cells. They are global properties, so that the next cell sees them and may declare them
 * again; `const` and `let` still mean what they say: no use before the declaration, no second value for a constant.
 */
export class CellNames {
  readonly #global: object;
  /** What the running cell declares and has not reached, with what was there before. */
  readonly #hidden = new Map<string, PropertyDescriptor | undefined>();

  constructor(globalObject: object) {
    this.#global = globalObject;
    Object.defineProperty(globalObject, CONSTANTS_NAME, { value: this.#assignedThrough(), configurable: true });
  }

  isConstant(name: string): boolean {
    const found = Object.getOwnPropertyDescriptor(this.#global, name);
    return found?.writable === false && found.configurable === true;
  }

  /** Before the cell runs. */
  open(declared: DeclaredNames): void {
    for (const [name, kind] of declared) {
      const before = Object.getOwnPropertyDescriptor(this.#global, name);
      // A function that an earlier script declared cannot be taken away; it can be given a value.
      if (before?.configurable === false) continue;
      if (kind !== "var") {
        this.#hidden.set(name, before);
        this.#hideUntilSet(name, kind);
      } else if (before === undefined || this.isConstant(name)) {
        this.#define(name, { value: before?.value, writable: true });
      }
    }
  }

  /** After it ran: a declaration that was not reached changes nothing. */
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
    // A property with a value is as fast as a variable; one with a getter is not.
    const set = (value: unknown): void => {
      this.#hidden.delete(name);
      this.#define(name, { value, writable: kind !== "const" });
    };
    Object.defineProperty(this.#global, name, { get, set, configurable: true, enumerable: true });
  }

  #define(name: string, { value, writable }: { value: unknown; writable: boolean }): void {
    Object.defineProperty(this.#global, name, { value, writable, configurable: true, enumerable: true });
  }

  /** Code that is not strict would lose an assignment to a constant without a word. */
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
