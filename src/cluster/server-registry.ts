import type { ClusterDatabase } from "./cluster-database.ts";
import { randomBytes } from "node:crypto";

export interface ServerRegistryOptions {
  readonly database: Pick<ClusterDatabase, "putServer" | "findServer" | "removeServer">;
  readonly serverId: string;
  /** How long after its last heartbeat a server counts as alive. */
  readonly leaseMs: number;
  /** The database has lost the stored sessions. */
  readonly onSessionsLost?: () => void;
}

const BEATS_PER_LEASE = 5;

/** Which servers are alive, and their addresses. Announces this server with a heartbeat. */
export class ServerRegistry {
  readonly #options: ServerRegistryOptions;
  #url: string | undefined;
  #heart: NodeJS.Timeout | undefined;
  #leaseEndsAt = -Infinity;
  #term = 0;
  #epoch: string | undefined;

  constructor(options: ServerRegistryOptions) {
    this.#options = options;
  }

  /** Other servers find this one until `leave`. */
  async announce(url: string): Promise<void> {
    this.#url = url;
    this.#heart ??= setInterval(() => void this.#beat(), this.#options.leaseMs / BEATS_PER_LEASE);
    this.#heart.unref();
    await this.#put(url);
  }

  /**
   * Counts the periods in which this server was announced without a gap; `undefined` while its lease may have expired. Another server
   * may have taken what this one owned in an earlier term.
   */
  term(): number | undefined {
    return performance.now() < this.#leaseEndsAt ? this.#term : undefined;
  }

  /** `undefined` when the server is not alive. @throws OwlError when the database does not answer. */
  find(serverId: string): Promise<string | undefined> {
    return this.#options.database.findServer(serverId);
  }

  async leave(): Promise<void> {
    clearInterval(this.#heart);
    if (this.#url === undefined) return;
    this.#url = undefined;
    this.#leaseEndsAt = -Infinity;
    // Without the removal other servers notice a lease later.
    await this.#options.database.removeServer(this.#options.serverId).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    // Calls fail with the error of the database; the next heartbeat tries again.
    if (this.#url !== undefined) await this.#put(this.#url).catch(() => undefined);
  }

  async #put(url: string): Promise<void> {
    const { database, serverId, leaseMs } = this.#options;
    const askedAt = performance.now();
    const epoch = await database.putServer(serverId, url, leaseMs);
    if (performance.now() >= this.#leaseEndsAt) this.#term += 1;
    this.#leaseEndsAt = Math.max(this.#leaseEndsAt, askedAt + leaseMs);
    const isLost = this.#epoch !== undefined && this.#epoch !== epoch;
    this.#epoch = epoch;
    if (isLost) this.#options.onSessionsLost?.();
  }
}

const SECRET_BYTES = 24;

/** An id that nobody guesses and that names the server which made it. */
export function newOwnedId(serverId: string): string {
  return `${serverId}.${randomBytes(SECRET_BYTES).toString("base64url")}`;
}

/** Which server an id names; nothing for ids that name none. */
export function serverOf(id: string): string | undefined {
  return /^([A-Za-z0-9_-]{12})\.[A-Za-z0-9_-]{32}$/.exec(id)?.[1];
}
