import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import type { DecisionLog, EgressDecision } from "./decision-log.ts";
import { type ListenerSocket, listenOnSocket } from "./listener-socket.ts";
import { type Exchange, type ExchangeScope, recordRefusal } from "./exchange.ts";
import { answerRefusal, forwardRequest } from "./forward-request.ts";
import type { EgressLimits } from "./controls.ts";
import { EgressRefusal, toRawResponse } from "./refusal.ts";
import { serveTunnel } from "./tunnel.ts";

interface ListenerOptions {
  readonly folder: string;
  readonly ownerUid: number | undefined;
  readonly limits: EgressLimits;
  readonly decisions: DecisionLog;
  readonly scope: Omit<ExchangeScope, "onOpened" | "onEnded">;
  readonly onClosed: (listener: EgressListener) => void;
}

/** The egress endpoint of one sandbox: only that sandbox can connect to its socket. */
export class EgressListener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #scope: ExchangeScope;
  readonly #clients = new Set<Socket>();
  readonly #served = new WeakSet<Socket>();
  readonly #exchanges = new Set<Exchange>();
  readonly #closing = new AbortController();
  #socket: ListenerSocket | undefined;
  #endedSent = 0;
  #endedReceived = 0;

  static async open(options: ListenerOptions): Promise<EgressListener> {
    const listener = new EgressListener(options);
    const { folder, ownerUid } = options;
    listener.#socket = await listenOnSocket(listener.#server, { folder, ownerUid });
    return listener;
  }

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#scope = {
      ...options.scope,
      onOpened: (exchange) => this.#exchanges.add(exchange),
      onEnded: (exchange) => this.#forget(exchange),
    };
    this.#server = this.#createServer();
  }

  get socketPath(): string {
    return this.#socket?.path ?? "";
  }

  get bytesSent(): number {
    return [...this.#exchanges].reduce((sum, { upstream }) => sum + upstream.bytesWritten, this.#endedSent);
  }

  get bytesReceived(): number {
    return [...this.#exchanges].reduce((sum, { upstream }) => sum + upstream.bytesRead, this.#endedReceived);
  }

  /** Open connections to upstream servers. */
  get openConnections(): number {
    return this.#exchanges.size;
  }

  /** The last decisions, oldest first. */
  decisions(): readonly EgressDecision[] {
    return this.#options.decisions.list();
  }

  /** Ends every connection and removes the socket. May be called twice. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Error("the egress listener is closed"));
    this.#server.close();
    for (const { upstream } of this.#exchanges) upstream.destroy();
    for (const client of this.#clients) client.destroy();
    await this.#socket?.remove();
    this.#options.onClosed(this);
  }

  #createServer(): Server {
    const { limits } = this.#options;
    const server = createServer({
      insecureHTTPParser: false,
      requireHostHeader: true,
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headerTimeoutMs,
      // A body may take long; the idle time-out closes connections without traffic.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(1000, limits.headerTimeoutMs),
    });
    server.maxConnections = limits.maxConnections;
    server.maxRequestsPerSocket = 1;
    // Node would drop headers above its limit without an error; `forwardRequest` refuses the request.
    server.maxHeadersCount = 0;
    server.on("connection", (client) => this.#onConnection(client));
    server.on("drop", () => {
      const refusal = new EgressRefusal(503, "too many connections", "");
      recordRefusal(this.#options.decisions, { refusal });
    });
    server.on("clientError", (error, client) => this.#onClientError(error, client));
    server.on("request", (request, response) => {
      if (!this.#isFirst(request.socket)) return answerRefusal(response, ONE_REQUEST);
      void forwardRequest({ request, response, scope: this.#scope, signal: this.#closing.signal });
    });
    server.on("connect", (request, client, head) => {
      client.on("error", ignore);
      if (!this.#isFirst(request.socket)) return void client.destroy();
      void serveTunnel({ request, client: request.socket, head, scope: this.#scope, signal: this.#closing.signal });
    });
    return server;
  }

  #onConnection(client: Socket): void {
    const { idleTimeoutMs, connectTimeoutMs, resolveTimeoutMs } = this.#options.limits;
    this.#clients.add(client);
    client.once("close", () => this.#clients.delete(client));
    // Longer than the time-outs of the upstream side, so that their error answer still arrives.
    client.setTimeout(idleTimeoutMs + connectTimeoutMs + resolveTimeoutMs + 1000, () => client.destroy());
  }

  /** One request per connection: bytes after it can never be parsed as a second request without the checks. */
  #isFirst(client: Socket): boolean {
    if (this.#served.has(client)) return false;
    this.#served.add(client);
    return true;
  }

  #onClientError(
    error: NodeJS.ErrnoException,
    client: { writable: boolean; end(text: string): void; destroy(): void },
  ): void {
    const refusal = toRefusal(error.code);
    recordRefusal(this.#options.decisions, { refusal });
    if (client.writable) client.end(toRawResponse(refusal));
    else client.destroy();
  }

  #forget(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    this.#endedSent += exchange.upstream.bytesWritten;
    this.#endedReceived += exchange.upstream.bytesRead;
  }
}

const ONE_REQUEST = new EgressRefusal(400, "pipelining", "egress refused: one request per connection");

function toRefusal(code: string | undefined): EgressRefusal {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new EgressRefusal(431, "header flood", "egress refused: the request head is too long");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new EgressRefusal(408, "slow head", "egress refused: the request head took too long");
    default:
      return new EgressRefusal(400, "malformed request", "egress refused: not a valid HTTP/1.1 request");
  }
}

function ignore(): void {}
