import { randomBytes } from "node:crypto";
import { OwlError } from "../../errors/owl-error.ts";
import type { Principal } from "../../auth/principal.ts";
import type { Mcp } from "../../protocol/mcp.ts";
import { Session } from "./session.ts";

export interface SessionsOptions {
  readonly mcp: Mcp;
  readonly maxSessions: number;
  readonly idleMs: number;
  readonly keepAliveMs: number;
  readonly fastPath: boolean;
  /** Default: names that say nothing. */
  readonly newId?: (() => string) | undefined;
}

const ID_BYTES = 24;

/** All sessions. One that belongs to somebody else looks like one that never was. */
export class Sessions {
  readonly #sessions = new Map<string, Session>();
  readonly #options: SessionsOptions;
  readonly #sweep: NodeJS.Timeout;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#sweep = setInterval(() => this.#endIdle(), Math.max(1000, options.idleMs / 10));
    this.#sweep.unref();
  }

  get size(): number {
    return this.#sessions.size;
  }

  has(id: string): boolean {
    return this.#sessions.has(id);
  }

  create({ id: ownerId }: Principal): Session {
    const { mcp, maxSessions, keepAliveMs, fastPath, newId = secretId } = this.#options;
    if (this.#sessions.size >= maxSessions && !this.#endLeastRecent()) {
      throw new OwlError("overloaded", `all ${maxSessions} sessions are in use`, { facts: { limit: maxSessions } });
    }
    const session = new Session({ id: newId(), mcp, ownerId, keepAliveMs, fastPath });
    this.#sessions.set(session.id, session);
    return session;
  }

  get(id: string, principal: Principal): Session {
    const session = this.#sessions.get(id);
    if (session === undefined || session.ownerId !== principal.id) {
      throw new OwlError("session_not_found", "this MCP session does not exist or has ended", {
        hint: "send initialize to start a new session",
      });
    }
    session.lastUsedAt = performance.now();
    return session;
  }

  async end(session: Session): Promise<void> {
    this.#sessions.delete(session.id);
    await session.close();
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all([...this.#sessions.values()].map((session) => this.end(session)));
  }

  #endIdle(): void {
    const oldest = performance.now() - this.#options.idleMs;
    for (const session of this.#sessions.values()) {
      if (session.lastUsedAt < oldest && !session.isBusy) void this.end(session);
    }
  }

  /** Room is made by whoever holds the most, with the session used least recently; never by one that is at work. */
  #endLeastRecent(): boolean {
    const held = new Map<string, number>();
    for (const { ownerId } of this.#sessions.values()) held.set(ownerId, (held.get(ownerId) ?? 0) + 1);
    const idle = [...this.#sessions.values()].filter(({ isBusy }) => !isBusy);
    const byShareThenAge = (a: Session, b: Session): number =>
      (held.get(b.ownerId) ?? 0) - (held.get(a.ownerId) ?? 0) || a.lastUsedAt - b.lastUsedAt;
    const [first] = idle.sort(byShareThenAge);
    if (first === undefined) return false;
    void this.end(first);
    return true;
  }
}

/** A name that says nothing and that nobody guesses. */
export function secretId(): string {
  return randomBytes(ID_BYTES).toString("base64url");
}
