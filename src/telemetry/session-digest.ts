import { createHash } from "node:crypto";

const SHOWN_CHARS = 16;

/**
 * What logs and ledger call a sandbox's session. The id itself opens the sandbox for whoever holds it: by the digest, lines
 * of one sandbox can be told together, and nobody gets in by reading.
 */
export function sessionDigest(sessionId: string): string {
  return createHash("sha256").update(sessionId).digest("hex").slice(0, SHOWN_CHARS);
}

const SESSION_ID = /^(?:[\w-]{12}\.)?[\w-]{32}$/;

/** Whether it looks like an id that a server gives to a sandbox; whatever else callers write there opens nothing. */
export function isSessionId(text: string): boolean {
  return SESSION_ID.test(text);
}
