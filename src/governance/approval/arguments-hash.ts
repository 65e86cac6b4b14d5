import { createHash } from "node:crypto";

/** What a yes is for. */
export interface ApprovedCall {
  readonly principal: string;
  readonly kind: string;
  readonly name: string;
  readonly args: unknown;
}

/** The same call has the same hash, however its client ordered the arguments. */
export function argumentsHash({ principal, kind, name, args }: ApprovedCall): string {
  return createHash("sha256")
    .update(JSON.stringify([principal, kind, name, args], sortKeys))
    .digest("base64url");
}

/** An object stays one: as a list of its pairs it would look like what a client can send as a list. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries: [string, unknown][] = Object.entries(value);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
