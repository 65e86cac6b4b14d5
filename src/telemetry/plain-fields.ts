import type { Redactor } from "./redact.ts";

const MAX_DEPTH = 8;
const MAX_ITEMS = 100;
const MAX_TEXT_CHARS = 16_384;

/**
 * Converts any logged value to a tree that JSON can express: without cycles, without getters that throw, limited in
 * size. Secrets are redacted as in the ledger. Field names are chosen by the server, so they are not checked for
 * secrets.
 */
export function toPlainFields(
  fields: Readonly<Record<string, unknown>>,
  redactor: Pick<Redactor, "text">,
): Record<string, unknown> {
  const copier = new PlainCopier(redactor);
  const plain: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    const value = copier.copySafely(read(fields, name));
    if (value !== undefined) plain[name] = value;
  }
  return plain;
}

class PlainCopier {
  readonly #redactor: Pick<Redactor, "text">;

  constructor(redactor: Pick<Redactor, "text">) {
    this.#redactor = redactor;
  }

  /** A field that throws, such as a revoked proxy, must not drop the whole line. */
  copySafely(value: unknown): unknown {
    try {
      return value === undefined ? undefined : this.#copy(value, []);
    } catch {
      return "[unreadable]";
    }
  }

  #copy(value: unknown, parents: readonly object[]): unknown {
    switch (typeof value) {
      case "string":
        return this.#text(value);
      case "number":
        return Number.isFinite(value) ? value : String(value);
      case "boolean":
        return value;
      case "object":
        return value === null ? null : this.#object(value, parents);
      case "function":
        return `[function ${value.name}]`;
      default:
        return String(value);
    }
  }

  #text(text: string): string {
    if (text.length <= MAX_TEXT_CHARS) return this.#redactor.text(text);
    return `${this.#redactor.text(text.slice(0, MAX_TEXT_CHARS))}… (${text.length} characters)`;
  }

  #object(value: object, parents: readonly object[]): unknown {
    if (parents.includes(value)) return "[circular]";
    if (parents.length >= MAX_DEPTH) return "[too deep]";
    const below = [...parents, value];
    if (value instanceof Error) return this.#error(value, below);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[invalid date]" : value.toISOString();
    if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
    if (Array.isArray(value)) return this.#list(value, below);
    if (value instanceof Set) return this.#list([...value], below);
    const entries: (readonly [string, unknown])[] =
      value instanceof Map
        ? [...value].map(([key, item]) => [String(key), item] as const)
        : Object.keys(value).map((name) => [name, read(value, name)] as const);
    return this.#entries(entries, below);
  }

  #error(error: Error, parents: readonly object[]): Record<string, unknown> {
    const own = Object.keys(error).filter(
      (name) => name !== "name" && name !== "message" && name !== "stack" && name !== "cause",
    );
    const plain: Record<string, unknown> = {
      ...this.#entries(
        own.map((name) => [name, read(error, name)]),
        parents,
      ),
      type: error.name,
      message: this.#text(error.message),
      stack: error.stack === undefined ? undefined : this.#text(error.stack),
    };
    if (error.cause !== undefined) plain["cause"] = this.#copy(error.cause, parents);
    return plain;
  }

  #list(items: readonly unknown[], parents: readonly object[]): unknown[] {
    const plain = items.slice(0, MAX_ITEMS).map((item) => this.#copy(item, parents));
    if (items.length > MAX_ITEMS) plain.push(`… ${items.length - MAX_ITEMS} more`);
    return plain;
  }

  #entries(entries: readonly (readonly [string, unknown])[], parents: readonly object[]): Record<string, unknown> {
    const plain: Record<string, unknown> = {};
    for (const [name, item] of entries.slice(0, MAX_ITEMS)) {
      if (item !== undefined) plain[name] = this.#copy(item, parents);
    }
    if (entries.length > MAX_ITEMS) plain["…"] = `${entries.length - MAX_ITEMS} more`;
    return plain;
  }
}

function read(source: object, name: string): unknown {
  try {
    return Reflect.get(source, name);
  } catch {
    return "[unreadable]";
  }
}

const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const ALL_CONTROLS = new RegExp(CONTROLS, "g");

/**
 * Escapes control characters: text from outside must not start a new line, move the cursor, reorder characters or
 * colour the terminal. The parsed JSON stays the same. U+2028 and U+2029 are escaped too, because some programs, Node
 * 24 among them, treat them as line ends.
 */
export function withoutControls(text: string): string {
  // Most texts contain none, and testing is cheaper than replacing.
  if (!CONTROLS.test(text)) return text;
  return text.replace(ALL_CONTROLS, (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
}
