import { randomBytes } from "node:crypto";

const SECRET_BYTES = 24;

/** An id that nobody guesses and that names the server which made it. */
export function newHomeId(serverId: string): string {
  return `${serverId}.${randomBytes(SECRET_BYTES).toString("base64url")}`;
}

/** Which server an id names; nothing for ids that name none. */
export function homeOf(id: string): string | undefined {
  return /^([A-Za-z0-9_-]{12})\.[A-Za-z0-9_-]{32}$/.exec(id)?.[1];
}
