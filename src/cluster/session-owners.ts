import type { SessionLocation } from "./cluster-database.ts";
import type { ForwardedRequest } from "./forward-receiver.ts";
import type { ForwardOutcome, SessionMessage } from "./forward-message.ts";
import type { ForwardCall, Forwarder, ServerAddress } from "./forwarder.ts";
import { type ServerRegistry, serverOf, newOwnedId } from "./server-registry.ts";
import type { SessionStore } from "./session-store.ts";

type Serve = (message: SessionMessage, line: ForwardedRequest) => Promise<unknown>;

export interface SessionOwnersOptions {
  readonly serverId: string;
  readonly forwarder: Forwarder;
  readonly registry: ServerRegistry;
  readonly leaseMs: number;
  /** Where sessions outlive the server that owns them. */
  readonly store: SessionStore;
}

/** Which server has which MCP session, and the way to it. */
export class SessionOwners {
  readonly serverId: string;
  readonly leaseMs: number;
  readonly #options: SessionOwnersOptions;
  #serve: Serve | undefined;

  constructor(options: SessionOwnersOptions) {
    this.#options = options;
    this.serverId = options.serverId;
    this.leaseMs = options.leaseMs;
  }

  get store(): SessionStore {
    return this.#options.store;
  }

  /** See `ServerRegistry.term`. */
  term(): number | undefined {
    return this.#options.registry.term();
  }

  newId(): string {
    return newOwnedId(this.serverId);
  }

  /** `undefined` when the id is not one of this cluster. @throws OwlError when the database does not answer. */
  async locate(sessionId: string): Promise<SessionLocation | undefined> {
    const named = serverOf(sessionId);
    return named === undefined ? undefined : this.#options.store.locate(sessionId, named, this.leaseMs);
  }

  ask(place: ServerAddress, message: SessionMessage, call: ForwardCall): Promise<ForwardOutcome | number> {
    return this.#options.forwarder.ask(place, message, call);
  }

  /** Says who answers requests to sessions of this server. */
  serveWith(serve: Serve): void {
    this.#serve = serve;
  }

  /** A request that another server sends here. */
  async run(message: SessionMessage, line: ForwardedRequest): Promise<unknown> {
    return this.#serve?.(message, line);
  }
}
