const SHORTEST_CUT = 80;
const MAX_ROUNDS = 200;

export type JsonObject = Record<string, unknown>;

interface Fitted {
  readonly value: JsonObject;
  readonly json: string;
}

/**
 * Shortens a value field by field until its JSON has at most so many characters: the longest text first, then the longest
 * list, so that what is left always parses.
 */
export function fitValue(original: JsonObject, maxChars: number): Fitted {
  let json = JSON.stringify(original);
  if (json.length <= maxChars) return { value: original, json };
  const value = structuredClone(original);
  for (let round = 0; round < MAX_ROUNDS && json.length > maxChars; round += 1) {
    if (!shorten(value, json.length - maxChars)) break;
    json = JSON.stringify(value);
  }
  return { value, json };
}

interface Place {
  readonly size: number;
  readonly cut: (excess: number) => void;
}

function shorten(root: JsonObject, excess: number): boolean {
  const places: Place[] = [];
  collect(root, root, places);
  const longest = places.toSorted((a, b) => b.size - a.size)[0];
  if (longest === undefined) return false;
  longest.cut(excess);
  return true;
}

function collect(node: object, root: JsonObject, places: Place[]): void {
  for (const [key, child] of entriesOf(node)) {
    if (typeof child === "string" && child.length > SHORTEST_CUT) {
      const cut = (excess: number): void => {
        // An escaped character may take six in JSON, so a cut by the excess alone could be far too much.
        const keep = Math.max(SHORTEST_CUT, Math.min(child.length - 1, child.length - Math.ceil(excess / 2)));
        Reflect.set(node, key, cutText(child, keep));
      };
      places.push({ size: JSON.stringify(child).length, cut });
    }
    if (typeof child !== "object" || child === null) continue;
    collect(child, root, places);
    if (isLongList(child)) places.push(listPlace(child, root));
  }
}

function entriesOf(node: object): [string, unknown][] {
  return Object.entries(node);
}

function isLongList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 1;
}

function listPlace(list: unknown[], root: JsonObject): Place {
  return {
    // A list counts less than a text of the same length: entries that are whole say more than a long text.
    size: JSON.stringify(list).length / 2,
    cut: (excess) => {
      const average = JSON.stringify(list).length / list.length;
      const left = Math.max(1, list.length - Math.max(1, Math.ceil(excess / average)));
      const dropped = list.splice(left).length;
      root["is_truncated"] = true;
      root["note"] = `${dropped} entries were left out to keep the result short; ask for less at once`;
    },
  };
}

/** Keeps the head and the tail of a text, and says between them how much is missing. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const notice = `\n[... ${text.length - maxChars} characters cut ...]\n`;
  const room = Math.max(0, maxChars - notice.length);
  const head = text.slice(0, Math.ceil(room / 2)).replace(/[\uD800-\uDBFF]$/, "");
  const tail = text.slice(text.length - Math.floor(room / 2)).replace(/^[\uDC00-\uDFFF]/, "");
  return `${head}${notice}${tail}`;
}
