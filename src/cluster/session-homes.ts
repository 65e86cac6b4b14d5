import type { ForwardLine } from "./forward-door.ts";
import type { ForwardOutcome, SessionMessage } from "./forward-message.ts";
import type { ForwardCall, Forwarder, ServerPlace } from "./forwarder.ts";
import { homeOf, newHomeId } from "./home-id.ts";
import type { ServerRegistry } from "./server-registry.ts";
import type { SessionStore } from "./session-store.ts";

/** Where a session is: on which server, and where that is, if it lives. */
export interface SessionPlace {
  readonly home: string;
  readonly url: string | undefined;
}

type Serve = (message: SessionMessage, line: ForwardLine) => Promise<unknown>;

export interface SessionHomesOptions {
  readonly serverId: string;
  readonly forwarder: Forwarder;
  readonly registry: ServerRegistry;
  readonly leaseMs: number;
  /** Where sessions survive their server; without it they end with it. */
  readonly store?: SessionStore | undefined;
}

/** Which server has which MCP session, and the way to it. */
export class SessionHomes {
  readonly serverId: string;
  readonly leaseMs: number;
  readonly #options: SessionHomesOptions;
  #serve: Serve | undefined;

  constructor(options: SessionHomesOptions) {
    this.#options = options;
    this.serverId = options.serverId;
    this.leaseMs = options.leaseMs;
  }

  get store(): SessionStore | undefined {
    return this.#options.store;
  }

  /** See `ServerRegistry.term`. */
  term(): number | undefined {
    return this.#options.registry.term();
  }

  newId(): string {
    return newHomeId(this.serverId);
  }

  /** Nothing for what is no id of a session of this cluster. @throws OwlError when nobody can be asked. */
  async locate(sessionId: string): Promise<SessionPlace | undefined> {
    const home = homeOf(sessionId);
    if (home === undefined) return undefined;
    const { store } = this.#options;
    if (store !== undefined) return store.locate(sessionId, home);
    if (home === this.serverId) return { home, url: undefined };
    return { home, url: await this.#options.registry.find(home) };
  }

  ask(place: ServerPlace, message: SessionMessage, call: ForwardCall): Promise<ForwardOutcome | number> {
    return this.#options.forwarder.ask(place, message, call);
  }

  /** Says who answers requests to sessions of this server. */
  serveWith(serve: Serve): void {
    this.#serve = serve;
  }

  /** A request that another server sends here. */
  async run(message: SessionMessage, line: ForwardLine): Promise<unknown> {
    return this.#serve?.(message, line);
  }
}
