import { createRedactor } from "./redact.ts";

const MAX_DEPTH = 8;
const MAX_ITEMS = 100;
const MAX_TEXT_CHARS = 16_384;

/** What looks like a secret stays out of logs as it stays out of the ledger. Names of fields are ours, so they hide nothing. */
const redactor = createRedactor();

/** Turns whatever a caller logs into a tree that JSON can express: no cycles, no getters that throw, bounded in size. */
export function toPlainFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    const value = toPlainSafely(read(fields, name));
    if (value !== undefined) plain[name] = value;
  }
  return plain;
}

/** One field that resists, such as a revoked proxy, must not cost the line. */
function toPlainSafely(value: unknown): unknown {
  try {
    return value === undefined ? undefined : toPlain(value, []);
  } catch {
    return "[unreadable]";
  }
}

function toPlain(value: unknown, parents: readonly object[]): unknown {
  switch (typeof value) {
    case "string":
      return toPlainText(value);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "object":
      return value === null ? null : toPlainObject(value, parents);
    case "function":
      return `[function ${value.name}]`;
    default:
      return String(value);
  }
}

function toPlainText(text: string): string {
  if (text.length <= MAX_TEXT_CHARS) return redactor.text(text);
  return `${redactor.text(text.slice(0, MAX_TEXT_CHARS))}… (${text.length} characters)`;
}

function toPlainObject(value: object, parents: readonly object[]): unknown {
  if (parents.includes(value)) return "[circular]";
  if (parents.length >= MAX_DEPTH) return "[too deep]";
  const below = [...parents, value];
  if (value instanceof Error) return toPlainError(value, below);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[invalid date]" : value.toISOString();
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return toPlainList(value, below);
  if (value instanceof Set) return toPlainList([...value], below);
  if (value instanceof Map)
    return toPlainEntries(
      [...value].map(([key, item]) => [String(key), item]),
      below,
    );
  return toPlainEntries(
    Object.keys(value).map((name) => [name, read(value, name)]),
    below,
  );
}

function toPlainError(error: Error, parents: readonly object[]): Record<string, unknown> {
  const own = Object.keys(error).filter(
    (name) => name !== "name" && name !== "message" && name !== "stack" && name !== "cause",
  );
  const plain: Record<string, unknown> = {
    ...toPlainEntries(
      own.map((name) => [name, read(error, name)]),
      parents,
    ),
    type: error.name,
    message: toPlainText(error.message),
    stack: error.stack === undefined ? undefined : toPlainText(error.stack),
  };
  if (error.cause !== undefined) plain["cause"] = toPlain(error.cause, parents);
  return plain;
}

function toPlainList(items: readonly unknown[], parents: readonly object[]): unknown[] {
  const plain = items.slice(0, MAX_ITEMS).map((item) => toPlain(item, parents));
  if (items.length > MAX_ITEMS) plain.push(`… ${items.length - MAX_ITEMS} more`);
  return plain;
}

function toPlainEntries(
  entries: readonly (readonly [string, unknown])[],
  parents: readonly object[],
): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [name, item] of entries.slice(0, MAX_ITEMS)) {
    if (item !== undefined) plain[name] = toPlain(item, parents);
  }
  if (entries.length > MAX_ITEMS) plain["…"] = `${entries.length - MAX_ITEMS} more`;
  return plain;
}

function read(source: object, name: string): unknown {
  try {
    return Reflect.get(source, name);
  } catch {
    return "[unreadable]";
  }
}
