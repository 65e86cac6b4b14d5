const MAX_TEXT_CHARS = 1000;
const MAX_FIELDS = 50;

/** What every line begins with; no field may say it again. */
const HEAD: ReadonlySet<string> = new Set(["time", "level", "message"]);

/** Few, short and flat, as most lines' fields are: then JSON can have them as they stand. */
export function areSimple(fields: Readonly<Record<string, unknown>>): boolean {
  try {
    return areFlat(fields, 0);
  } catch {
    // A getter that throws, a revoked proxy: for those who look at each piece with care.
    return false;
  }
}

function areFlat(fields: Readonly<Record<string, unknown>>, depth: number): boolean {
  let count = 0;
  for (const name in fields) {
    count += 1;
    if (count > MAX_FIELDS || (depth === 0 && HEAD.has(name)) || !isSimple(fields[name], depth)) return false;
  }
  return true;
}

function isSimple(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
      return value.length <= MAX_TEXT_CHARS;
    case "number":
      return Number.isFinite(value);
    case "boolean":
    case "undefined":
      return true;
    case "object":
      return value === null || (depth === 0 && isPlainObject(value) && areFlat(value, depth + 1));
    default:
      return false;
  }
}

function isPlainObject(value: object): value is Record<string, unknown> {
  return Object.getPrototypeOf(value) === Object.prototype && !("toJSON" in value);
}
