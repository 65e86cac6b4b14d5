/**
 * The largest honest answers, a search with all its context and a list of a whole workspace, have fewer. Each value costs time and
 * memory when it is parsed and checked, far beyond its bytes.
 */
const MAX_VALUES = 50_000;
/** Twenty times as deep as any honest answer. */
const MAX_DEPTH = 200;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** Looks at the bytes before anything is made of them, and stops at the first value too many. Whether they are JSON is not said. */
export function assertFewValues(body: Buffer): void {
  let values = 1;
  let depth = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === QUOTE) at = stringEnd(body, at + 1);
    else if (byte === COMMA) values += 1;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      values += 1;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
    if (values > MAX_VALUES) throw new Error(`it holds more than ${MAX_VALUES} values`);
    if (depth > MAX_DEPTH) throw new Error(`it is nested deeper than ${MAX_DEPTH} levels`);
  }
}

/** Where the string's closing quote is. */
function stringEnd(body: Buffer, from: number): number {
  for (let at = from; at < body.length; at += 1) {
    if (body[at] === BACKSLASH) at += 1;
    else if (body[at] === QUOTE) return at;
  }
  return body.length;
}
