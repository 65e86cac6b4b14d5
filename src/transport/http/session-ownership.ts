import type { SessionOwners } from "../../cluster/session-owners.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { HttpExchange } from "./exchange-io.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

export interface SessionOwnershipOptions {
  readonly sessions: Sessions;
  readonly owners: SessionOwners;
  readonly logger: Logger;
}

export type TakeOver = "here" | "nowhere" | "moved";

/** Knows which sessions this server certainly owns, and takes over sessions of servers that are gone. */
export class SessionOwnership {
  readonly #options: SessionOwnershipOptions;
  /** The term of this server in which its ownership of a session was confirmed. */
  readonly #terms = new WeakMap<Session, number>();
  readonly #adopting = new Map<string, Promise<TakeOver>>();

  constructor(options: SessionOwnershipOptions) {
    this.#options = options;
  }

  /** Whether this server can use the session without asking the store. */
  isHere(sessionId: string): boolean {
    const { sessions, owners } = this.#options;
    const session = sessions.find(sessionId);
    if (session === undefined) return false;
    const term = owners.term();
    return term !== undefined && this.#terms.get(session) === term && session.log?.isTaken !== true;
  }

  /** The store has confirmed in this term that this server owns the session. */
  confirm(sessionId: string, term: number | undefined): void {
    const session = this.#options.sessions.find(sessionId);
    if (session !== undefined && term !== undefined) this.#terms.set(session, term);
  }

  /** Resolves when no takeover of the session is in progress on this server. */
  async settled(sessionId: string): Promise<void> {
    await this.#adopting.get(sessionId)?.catch(() => undefined);
  }

  /** Releases a session that another server owns by now. */
  async letGo(sessionId: string): Promise<void> {
    const { sessions } = this.#options;
    const session = sessions.find(sessionId);
    if (session !== undefined) await sessions.letGo(session);
  }

  /**
   * Takes over a session of a server that is gone, for its owner.
   * @throws OwlError when the store is unavailable.
   */
  adopt(sessionId: string, from: string, exchange: HttpExchange): Promise<TakeOver> {
    const running = this.#adopting.get(sessionId);
    if (running !== undefined) return running;
    const adoption = this.#adopt(sessionId, from, exchange).finally(() => this.#adopting.delete(sessionId));
    this.#adopting.set(sessionId, adoption);
    return adoption;
  }

  async #adopt(sessionId: string, from: string, exchange: HttpExchange): Promise<TakeOver> {
    const { sessions, owners, logger } = this.#options;
    const state = await owners.store.read(sessionId);
    if (state?.ownerId !== exchange.principal.id) return "nowhere";
    const taken = await owners.store.take(sessionId, from);
    if (taken === undefined) return "moved";
    await sessions.restore(sessionId, taken, exchange);
    logger.info("took over a session of a server that is gone", { server: from, trace_id: exchange.traceId });
    return "here";
  }
}
