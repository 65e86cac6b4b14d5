import type { Authenticator } from "../../auth/authenticator.ts";
import type { ForwardedRequest } from "../../cluster/forward-receiver.ts";
import type { SessionMessage } from "../../cluster/forward-message.ts";
import type { SessionExchange, AnswerSink } from "./exchange-io.ts";
import type { SessionRequest } from "./session-endpoint.ts";

type Serve = (request: SessionRequest, exchange: SessionExchange) => Promise<void>;

export interface RelayedRequestsOptions {
  readonly authenticator: Authenticator;
  /** How often the other server gets a sign of life. */
  readonly beatMs: number;
  readonly endpoints: Readonly<Record<SessionMessage["endpoint"], Serve>>;
}

/** Serves requests to sessions of this server that clients have sent to other servers. */
export class RelayedRequests {
  readonly #options: RelayedRequestsOptions;

  constructor(options: RelayedRequestsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the answer is complete.
   * @throws OwlError, which the other server sends to the client.
   */
  async serve(message: SessionMessage, line: ForwardedRequest): Promise<null> {
    const { authenticator, beatMs, endpoints } = this.#options;
    const { endpoint, method, sessionId, body, headers, label, traceId, authorization } = message;
    const principal = await authenticator.authenticate(authorization);
    const response = new RelayedAnswer(line);
    const { release } = line;
    // A stream stays open as long as its client, so shutdown does not wait for it.
    if (method === "GET") release();
    const heart = setInterval(() => line.tell({ news: "alive" }), beatMs);
    try {
      const exchange = { request: { headers }, response, principal, label, traceId, release };
      const served = endpoints[endpoint]({ method, sessionId, body }, exchange);
      line.linger(served);
      const failed = new Promise<never>((_resolve, reject) => void served.catch(reject));
      await Promise.race([response.closed, failed]);
    } finally {
      clearInterval(heart);
    }
    return null;
  }
}

/** Writes a response to the server that has the client. */
export class RelayedAnswer implements AnswerSink {
  headersSent = false;
  destroyed = false;
  writableEnded = false;
  /** Resolves when the response is complete or the other server has disconnected. */
  readonly closed: Promise<void>;
  readonly #line: ForwardedRequest;
  readonly #listeners: (() => void)[] = [];
  #resolveClosed: () => void = () => undefined;

  constructor(line: ForwardedRequest) {
    this.#line = line;
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    if (line.signal.aborted) this.destroy();
    else line.signal.addEventListener("abort", () => this.destroy(), { once: true });
  }

  get writableFinished(): boolean {
    return this.writableEnded;
  }

  get writableLength(): number {
    return this.#line.waitingBytes();
  }

  writeHead(status: number, headers: Readonly<Record<string, string | number>>): void {
    this.headersSent = true;
    const texts = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    this.#line.tell({ news: "head", status, headers: texts });
  }

  /** Nothing is buffered here. */
  flushHeaders(): void {}

  write(text: string | Buffer): void {
    if (!this.destroyed && !this.writableEnded) this.#line.tell({ news: "data", text: text.toString() });
  }

  end(text?: string | Buffer): void {
    if (this.destroyed || this.writableEnded) return;
    if (text !== undefined && text.length > 0) this.write(text);
    this.writableEnded = true;
    this.#close();
  }

  destroy(): void {
    if (this.destroyed || this.writableEnded) return;
    this.destroyed = true;
    this.#close();
  }

  once(_event: "close", listener: () => void): void {
    this.#listeners.push(listener);
  }

  #close(): void {
    this.#resolveClosed();
    // As in Node: the caller of `end` continues before the `close` listeners run.
    queueMicrotask(() => this.#listeners.splice(0).forEach((listener) => listener()));
  }
}
