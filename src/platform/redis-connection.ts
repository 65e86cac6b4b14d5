import { createClient } from "@redis/client";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface RedisConnectionOptions {
  readonly url: string;
  readonly logger: Logger;
  /** What has not answered by then counts as lost, and its connection with it. */
  readonly timeoutMs?: number;
}

type Client = ReturnType<typeof newClient>;

const TIMEOUT_MS = 3000;
const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 1000;

/**
 * One line to Redis that comes back by itself. Nothing is kept for later: what cannot be asked now fails now, and what
 * was asked and not answered may or may not have happened.
 */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  readonly #listeners: (() => void)[] = [];
  #client: Client;
  #isLost = false;
  #isClosed = false;

  private constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#client = this.#connect();
  }

  /** @throws OwlError when Redis does not answer at the start. */
  static async open(options: RedisConnectionOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(options);
    try {
      await connection.#ready();
      await connection.send(["PING"]);
    } catch (error) {
      connection.close();
      throw unavailable(error);
    }
    return connection;
  }

  get isReady(): boolean {
    return this.#client.isReady;
  }

  /** Calls back whenever the connection stands again after it was lost. */
  onReturn(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async send(command: readonly string[]): Promise<unknown> {
    const client = this.#client;
    if (this.#isClosed || !client.isReady) throw unavailable(new Error("not connected"));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reject(unavailable(new Error("no answer in time")));
        this.#replace(client);
      }, this.#options.timeoutMs ?? TIMEOUT_MS);
    });
    try {
      return await Promise.race([client.sendCommand([...command]), late]);
    } catch (error) {
      throw isReply(error) ? error : unavailable(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Runs a script by its digest; Redis forgets scripts when it starts anew. */
  async run({ digest, text }: { readonly digest: string; readonly text: string }, argument: string): Promise<unknown> {
    try {
      return await this.send(["EVALSHA", digest, "0", argument]);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      return this.send(["EVAL", text, "0", argument]);
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#client.destroy();
  }

  #connect(): Client {
    const client = newClient(this.#options);
    client.on("error", (error: unknown) => {
      if (this.#isLost || this.#isClosed) return;
      this.#isLost = true;
      this.#options.logger.error("Redis is lost: calls are refused until it is back", { error });
    });
    client.on("ready", () => {
      if (!this.#isLost) return;
      this.#isLost = false;
      this.#options.logger.info("Redis is back");
      for (const listener of this.#listeners) listener();
    });
    client.connect().catch(() => undefined);
    return client;
  }

  #replace(client: Client): void {
    if (this.#client !== client || this.#isClosed) return;
    this.#isLost = true;
    this.#options.logger.error("Redis does not answer: calls are refused until it does");
    client.destroy();
    this.#client = this.#connect();
  }

  #ready(): Promise<void> {
    const client = this.#client;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("no connection in time")), this.#options.timeoutMs ?? TIMEOUT_MS);
      client.once("ready", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

function newClient({ url, timeoutMs = TIMEOUT_MS }: RedisConnectionOptions) {
  return createClient({
    url,
    disableOfflineQueue: true,
    disableClientInfo: true,
    socket: {
      connectTimeout: timeoutMs,
      reconnectStrategy: (retries) => Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(retries, 10)),
    },
  });
}

function unavailable(cause: unknown): OwlError {
  return new OwlError("store_unavailable", "Redis does not answer, so no call is let through", {
    hint: "Try again in a moment. Operators: check that the Redis in limits.url runs and lets this server in.",
    cause,
  });
}

/** Redis answered, if only with an error: what it was asked did not happen. */
function isReply(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]+ /.test(error.message);
}
