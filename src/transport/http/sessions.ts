import { randomBytes } from "node:crypto";
import type { TakenSession } from "../../cluster/session-state.ts";
import type { SessionStore } from "../../cluster/session-store.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Principal } from "../../auth/principal.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import type { SessionExchange } from "./exchange-io.ts";
import { Session, type SessionOptions } from "./session.ts";

export interface SessionsOptions {
  readonly mcp: Mcp;
  readonly maxSessions: number;
  readonly idleMs: number;
  readonly keepAliveMs: number;
  /** Default: random ids. */
  readonly newId?: (() => string) | undefined;
  /** Stores sessions for other servers. */
  readonly store?: SessionStore | undefined;
}

const ID_BYTES = 24;

/** All sessions of this server. For other principals a session does not exist. */
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

  find(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  create({ id: ownerId }: Principal): Session {
    const { newId = secretId } = this.#options;
    const session = this.#make({ id: newId(), ownerId });
    this.#sessions.set(session.id, session);
    return session;
  }

  /** Continues a session of another server. */
  async restore(id: string, taken: TakenSession, exchange: SessionExchange): Promise<void> {
    const session = this.#make({ id, ownerId: taken.state.ownerId, taken });
    await session.revive(taken, exchange);
    this.#sessions.set(id, session);
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

  /** Ends the session on all servers. */
  async end(session: Session): Promise<void> {
    session.log?.end();
    await this.letGo(session);
  }

  /** Removes the session from this server. Another server may continue it. */
  async letGo(session: Session): Promise<void> {
    this.#sessions.delete(session.id);
    await session.close();
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all([...this.#sessions.values()].map((session) => this.letGo(session)));
  }

  #make(options: Pick<SessionOptions, "id" | "ownerId" | "taken">): Session {
    const { mcp, maxSessions, keepAliveMs, store } = this.#options;
    if (this.#sessions.size >= maxSessions && !this.#endLeastRecent()) {
      throw new OwlError("overloaded", `all ${maxSessions} sessions are in use`, { facts: { limit: maxSessions } });
    }
    return new Session({ ...options, mcp, keepAliveMs, store });
  }

  #endIdle(): void {
    const oldest = performance.now() - this.#options.idleMs;
    for (const session of this.#sessions.values()) {
      if (session.lastUsedAt < oldest && !session.isBusy) void this.end(session);
      else session.log?.keep();
    }
  }

  /** Ends the least recently used idle session of the principal with the most sessions. Busy sessions are not ended. */
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

/** A random id that cannot be guessed. */
export function secretId(): string {
  return randomBytes(ID_BYTES).toString("base64url");
}
