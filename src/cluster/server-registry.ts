import type { RedisConnection } from "../redis/redis-connection.ts";

export interface ServerRegistryOptions {
  readonly connection: RedisConnection;
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
    // A Redis that lost its memory hears of this server at once.
    options.connection.onReturn(() => void this.#beat());
  }

  /** Tells the others where this server is, until `leave`. */
  async announce(url: string): Promise<void> {
    this.#url = url;
    this.#heart ??= setInterval(() => void this.#beat(), this.#options.leaseMs / BEATS_PER_LEASE);
    this.#heart.unref();
    await this.#put(url);
  }

  /** Nothing when it does not live, as far as anybody knows. @throws OwlError when Redis does not answer. */
  async find(serverId: string): Promise<string | undefined> {
    const url = await this.#options.connection.send(["GET", keyOf(serverId)]);
    return typeof url === "string" ? url : undefined;
  }

  async leave(): Promise<void> {
    clearInterval(this.#heart);
    if (this.#url === undefined) return;
    this.#url = undefined;
    // A server that cannot say good-bye is missed a lease later.
    await this.#options.connection.send(["DEL", keyOf(this.#options.serverId)]).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    // The connection has said that it is lost; the next beat tries again.
    if (this.#url !== undefined) await this.#put(this.#url).catch(() => undefined);
  }

  async #put(url: string): Promise<void> {
    const { connection, serverId, leaseMs } = this.#options;
    await connection.send(["SET", keyOf(serverId), url, "PX", String(Math.ceil(leaseMs))]);
  }
}

function keyOf(serverId: string): string {
  return `owlclaw:server:${serverId}`;
}
