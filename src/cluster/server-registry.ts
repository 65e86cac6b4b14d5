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

  /** Nothing when it does not live, as far as anybody knows. @throws OwlError when nobody can be asked. */
  find(serverId: string): Promise<string | undefined> {
    return this.#options.directory.find(serverId);
  }

  async leave(): Promise<void> {
    clearInterval(this.#heart);
    if (this.#url === undefined) return;
    this.#url = undefined;
    // A server that cannot say good-bye is missed a lease later.
    await this.#options.directory.remove(this.#options.serverId).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    // Whoever calls hears that it is lost; the next beat tries again.
    if (this.#url !== undefined) await this.#put(this.#url).catch(() => undefined);
  }

  async #put(url: string): Promise<void> {
    const { directory, serverId, leaseMs } = this.#options;
    await directory.put(serverId, url, leaseMs);
  }
}
