import { isSecretField, type Redactor } from "../../telemetry/redact.ts";

const MAX_DEPTH = 12;
const MAX_ITEMS = 100;
/** The length that a number, a bracket or a comma counts as. */
const SMALL_VALUE_CHARS = 8;

/**
 * Whether a value is short, plain and without a key that names a secret, as most are: then it need not be copied piece
 * by piece.
 */
export function isHarmless(value: unknown, redactor: Redactor, maxChars: number): boolean {
  return new Inspection(redactor, maxChars).passes(value, 0);
}

class Inspection {
  readonly #redactor: Redactor;
  #charsLeft: number;

  constructor(redactor: Redactor, maxChars: number) {
    this.#redactor = redactor;
    this.#charsLeft = maxChars;
  }

  passes(value: unknown, depth: number): boolean {
    switch (typeof value) {
      case "string":
        return this.#hasRoom(value.length);
      case "number":
        return Number.isFinite(value) && this.#hasRoom(SMALL_VALUE_CHARS);
      case "boolean":
      case "undefined":
        return true;
      case "object":
        return value === null || this.#passesWhole(value, depth);
      default:
        return false;
    }
  }

  #hasRoom(chars: number): boolean {
    this.#charsLeft -= chars;
    return this.#charsLeft >= 0;
  }

  /** A value with `toJSON` is serialized differently from what its fields hold, so it does not pass. */
  #passesWhole(value: object, depth: number): boolean {
    if (depth >= MAX_DEPTH || "toJSON" in value || !this.#hasRoom(SMALL_VALUE_CHARS)) return false;
    return Array.isArray(value) ? this.#passesList(value, depth) : this.#passesFields(value, depth);
  }

  #passesList(items: readonly unknown[], depth: number): boolean {
    if (items.length > MAX_ITEMS) return false;
    for (const item of items) if (!this.passes(item, depth + 1)) return false;
    return true;
  }

  #passesFields(value: object, depth: number): boolean {
    const proto: unknown = Object.getPrototypeOf(value);
    if ((proto !== Object.prototype && proto !== null) || holdsBytes(value)) return false;
    for (const name of Object.keys(value)) {
      if (!this.#hasRoom(name.length) || isSecretField(this.#redactor, value, name)) return false;
      if (!this.passes(Reflect.get(value, name), depth + 1)) return false;
    }
    return true;
  }
}

/** Base64 data of an image or a file: the record has only its length. */
function holdsBytes(value: object): boolean {
  return "mimeType" in value && ("data" in value || "blob" in value);
}
