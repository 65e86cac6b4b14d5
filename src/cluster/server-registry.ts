import type { ServerDirectory } from "./server-directory.ts";

export interface ServerRegistryOptions {
  readonly directory: ServerDirectory;
  readonly serverId: string;
  /** How long after its last sign of life a server is still looked for. */
  readonly leaseMs: number;
}

const BEATS_PER_LEASE = 5;

/** Which servers live, and where they can be reached. */
export class ServerRegistry {
  readonly #options: ServerRegistryOptions;
  #url: string | undefined;
  #heart: NodeJS.Timeout | undefined;
  #leaseEndsAt = -Infinity;
  #term = 0;

  constructor(options: ServerRegistryOptions) {
    this.#options = options;
    // One that lost its memory hears of this server at once.
    options.directory.onReturn(() => void this.#beat());
  }

  /** Tells the others where this server is, until `leave`. */
  async announce(url: string): Promise<void> {
    this.#url = url;
    this.#heart ??= setInterval(() => void this.#beat(), this.#options.leaseMs / BEATS_PER_LEASE);
    this.#heart.unref();
    await this.#put(url);
  }

  /**
   * The number of the time without a break in which all servers take this one for alive; nothing when they may not. What belonged
   * to it in an earlier time may have been taken since.
   */
  term(): number | undefined {
    return performance.now() < this.#leaseEndsAt ? this.#term : undefined;
  }

  /** Nothing when it does not live, as far as anybody knows. @throws OwlError when nobody can be asked. */
  find(serverId: string): Promise<string | undefined> {
    return this.#options.directory.find(serverId);
  }

  async leave(): Promise<void> {
    clearInterval(this.#heart);
    if (this.#url === undefined) return;
    this.#url = undefined;
    this.#leaseEndsAt = -Infinity;
    // A server that cannot say good-bye is missed a lease later.
    await this.#options.directory.remove(this.#options.serverId).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    // Whoever calls hears that it is lost; the next beat tries again.
    if (this.#url !== undefined) await this.#put(this.#url).catch(() => undefined);
  }

  async #put(url: string): Promise<void> {
    const { directory, serverId, leaseMs } = this.#options;
    const askedAt = performance.now();
    await directory.put(serverId, url, leaseMs);
    if (performance.now() >= this.#leaseEndsAt) this.#term += 1;
    this.#leaseEndsAt = Math.max(this.#leaseEndsAt, askedAt + leaseMs);
  }
}
