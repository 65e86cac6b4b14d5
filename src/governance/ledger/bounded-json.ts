import { isSecretField, REDACTED, type Redactor } from "../../telemetry/redact.ts";
import { isHarmless } from "./harmless-value.ts";

export interface Bounds {
  /** For the whole value, measured in characters of its texts and keys. */
  readonly maxChars: number;
  /** For one text in it. */
  readonly maxTextChars: number;
}

const MAX_DEPTH = 12;
const MAX_ITEMS = 100;
const MAX_KEY_CHARS = 128;
/** Read beyond the cut, so that a secret at the cut is still redacted as a whole. */
const OVERLAP_CHARS = 512;
/** The length that a number, a bracket or a comma counts as. */
const SMALL_VALUE_CHARS = 8;

/**
 * JSON of a value without its secrets, not much longer than the bounds: each field is cut separately, so that the
 * result still parses.
 */
export function toBoundedJson(value: unknown, redactor: Redactor, bounds: Bounds): string {
  try {
    if (isHarmless(value, redactor, bounds.maxTextChars)) {
      const text = JSON.stringify(value) ?? "null";
      if (redactor.isClean(text)) return text;
    }
    return JSON.stringify(new Bounding(redactor, bounds).copy(value, 0)) ?? "null";
  } catch {
    // A getter threw, or a proxy is revoked: the value cannot be read.
    return '"[unreadable]"';
  }
}

class Bounding {
  readonly #redactor: Redactor;
  readonly #maxTextChars: number;
  #charsLeft: number;

  constructor(redactor: Redactor, { maxChars, maxTextChars }: Bounds) {
    this.#redactor = redactor;
    this.#maxTextChars = maxTextChars;
    this.#charsLeft = maxChars;
  }

  copy(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case "string":
        return this.#text(value);
      case "number":
        this.#charsLeft -= SMALL_VALUE_CHARS;
        return Number.isFinite(value) ? value : String(value);
      case "boolean":
        this.#charsLeft -= SMALL_VALUE_CHARS;
        return value;
      case "bigint":
        return this.#text(String(value));
      case "object":
        return value === null ? null : this.#object(value, depth);
      default:
        return undefined;
    }
  }

  #text(text: string): string {
    const room = Math.min(this.#maxTextChars, Math.max(0, this.#charsLeft));
    const isCut = text.length > room;
    const seen = isCut ? text.slice(0, room + OVERLAP_CHARS) : text;
    const clean = this.#redactor.text(seen);
    const kept = isCut ? `${clean.slice(0, room)}… [${text.length} characters]` : clean;
    this.#charsLeft -= kept.length + 2;
    return kept;
  }

  #object(value: object, depth: number): unknown {
    if (depth >= MAX_DEPTH) return "[too deep]";
    if (this.#charsLeft <= 0) return "[cut]";
    this.#charsLeft -= SMALL_VALUE_CHARS;
    if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    return Array.isArray(value) ? this.#list(value, depth) : this.#fields(value, depth);
  }

  #list(items: readonly unknown[], depth: number): unknown[] {
    const kept: unknown[] = [];
    for (const item of items) {
      if (kept.length >= MAX_ITEMS || this.#charsLeft <= 0) {
        kept.push(`… [${items.length} items]`);
        break;
      }
      kept.push(this.copy(item, depth + 1) ?? null);
    }
    return kept;
  }

  #fields(value: object, depth: number): Record<string, unknown> {
    const kept: Record<string, unknown> = {};
    const names = Object.keys(value);
    let count = 0;
    for (const name of names) {
      if (count >= MAX_ITEMS || this.#charsLeft <= 0) {
        kept["…"] = `[${names.length} fields]`;
        break;
      }
      count += 1;
      const key = this.#redactor.text(name.slice(0, MAX_KEY_CHARS));
      this.#charsLeft -= key.length + 4;
      const field: unknown = Reflect.get(value, name);
      const copy = this.#field(name, field, { parent: value, depth });
      if (key === "__proto__") Object.defineProperty(kept, key, { value: copy, enumerable: true, configurable: true });
      else kept[key] = copy;
    }
    return kept;
  }

  #field(name: string, field: unknown, place: { readonly parent: object; readonly depth: number }): unknown {
    const isEmpty = field === null || field === undefined || field === "" || typeof field === "boolean";
    if (!isEmpty && isSecretField(this.#redactor, place.parent, name)) {
      this.#charsLeft -= REDACTED.length;
      return REDACTED;
    }
    // Images and audio: their bytes are of no use to a reader.
    if (typeof field === "string" && (name === "data" || name === "blob") && "mimeType" in place.parent) {
      this.#charsLeft -= SMALL_VALUE_CHARS;
      return `[base64, ${field.length} characters]`;
    }
    return this.copy(field, place.depth + 1);
  }
}
