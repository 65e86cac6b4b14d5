import { randomBytes } from "node:crypto";

const SECRET_BYTES = 24;

/** An id that nobody guesses. Where several servers share the load it begins with the one that has the sandbox. */
export function newSessionId(serverId: string | undefined): string {
  const secret = randomBytes(SECRET_BYTES).toString("base64url");
  return serverId === undefined ? secret : `${serverId}.${secret}`;
}

/** Which server a session id names; nothing for ids of a server that stands alone. */
export function serverIdOf(sessionId: string): string | undefined {
  return /^([A-Za-z0-9_-]{12})\.[A-Za-z0-9_-]{32}$/.exec(sessionId)?.[1];
}
