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

/** A text or a list that can be shortened. */
interface Member {
  readonly size: number;
  readonly cut: (excess: number) => void;
}

function shorten(root: JsonObject, excess: number): boolean {
  const members: Member[] = [];
  collect(root, root, members);
  const longest = members.toSorted((a, b) => b.size - a.size)[0];
  longest?.cut(excess);
  return longest !== undefined;
}

function collect(node: object, root: JsonObject, members: Member[]): void {
  const entries: readonly [string, unknown][] = Object.entries(node);
  for (const [key, child] of entries) {
    if (typeof child === "string" && child.length > SHORTEST_CUT) {
      const cut = (excess: number): void => {
        // An escaped character takes up to six characters of JSON: cutting the whole excess could remove too much.
        const keep = Math.max(SHORTEST_CUT, Math.min(child.length - 1, child.length - Math.ceil(excess / 2)));
        Reflect.set(node, key, cutText(child, keep));
      };
      members.push({ size: JSON.stringify(child).length, cut });
    }
    if (typeof child !== "object" || child === null) continue;
    collect(child, root, members);
    if (Array.isArray(child) && child.length > 1) members.push(listMember(child, root));
  }
}

function listMember(list: unknown[], root: JsonObject): Member {
  return {
    // Half the weight of a text: whole entries are worth more to a model than a long text.
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
