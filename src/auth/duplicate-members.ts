// Strings first, so that a brace inside a string is never taken for structure.
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g;

/**
 * Tells whether an object in a JSON text names a member twice. Parsers differ in which of the two they keep,
 * so a token with duplicates could mean one thing to its issuer and another to us.
 * The text must be valid JSON.
 */
export function hasDuplicateMembers(json: string): boolean {
  const open: (Set<unknown> | undefined)[] = [];
  let lastString = "";
  for (const [token] of json.matchAll(TOKENS)) {
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") {
      const name: unknown = JSON.parse(lastString);
      const names = open.at(-1);
      if (names?.has(name)) return true;
      names?.add(name);
    } else if (token !== ",") lastString = token;
  }
  return false;
}
