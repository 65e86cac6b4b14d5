import { createHash } from "node:crypto";

/** The same call has the same hash, however its client ordered the arguments. */
export function argumentsHash(principal: string, name: string, args: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify([principal, name, sorted(args)]))
    .digest("base64url");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries: [string, unknown][] = Object.entries(value);
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, sorted(each)]);
}
