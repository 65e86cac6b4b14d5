import { createServer as createHttpServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { ForwardDoor } from "../../cluster/forward-door.ts";
import type { SessionHomes } from "../../cluster/session-homes.ts";
import type { Config } from "../../config/schema.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Mcp } from "../../protocol/mcp.ts";
import type { DashboardGate } from "./dashboard-gate.ts";
import { ForwardEndpoint } from "./forward-endpoint.ts";
import { HostGuard } from "./guards.ts";
import type { HealthDoor } from "./health-routes.ts";
import { LegacySse } from "./legacy-sse.ts";
import { McpEndpoint } from "./mcp-endpoint.ts";
import type { MetricsDoor } from "./metrics-route.ts";
import { OperatorApi, type OperatorDesk } from "./operator-api.ts";
import { RelayedRequests } from "./relayed-requests.ts";
import { RemoteSessions } from "./remote-sessions.ts";
import { Router } from "./router.ts";
import { type OperatorDoor, OperatorSandboxesEndpoint } from "./operator-sandboxes.ts";
import { type FileDoor, SandboxFilesEndpoint } from "./sandbox-files.ts";
import { readTls, type TlsPair, TlsWatcher, toContext } from "./tls.ts";

export interface HttpTransportOptions {
  readonly mcp: Mcp;
  readonly config: Config;
  readonly authenticator: Authenticator;
  /** The files of sandboxes; without it there is no door to them. */
  readonly files?: FileDoor | undefined;
  /** The record of calls, for operators; without it there is no door to it. */
  readonly ledger?: Ledger | undefined;
  /** Statistics and approvals; without it there is no door to them. */
  readonly desk?: OperatorDesk | undefined;
  /** Everybody's sandboxes, for operators. */
  readonly operator?: OperatorDoor | undefined;
  /** Calls of other servers; without it none are taken. */
  readonly forwards?: ForwardDoor | undefined;
  /** Sessions of other servers, and the way to those of this one. */
  readonly homes?: SessionHomes | undefined;
  /** How everything is that the server depends on. */
  readonly health?: HealthDoor | undefined;
  readonly metrics?: MetricsDoor | undefined;
  /** The page for operators. */
  readonly dashboard?: DashboardGate | undefined;
  /** Off only in the test that holds the fast path against the SDK's. */
  readonly fastPath?: boolean;
}

const TOO_SLOW = "ERR_HTTP_REQUEST_TIMEOUT";
const LAST_WORDS_MS = 500;
const SWEEP_MS = 10;
const BEATS_PER_LEASE = 5;

/** Stopping is said to clients, then waited for, then enforced. */
export class HttpTransport {
  readonly #options: HttpTransportOptions;
  readonly #servers: (Server | HttpsServer)[] = [];
  readonly #endpoint: McpEndpoint;
  readonly #sse: LegacySse;
  readonly #files: SandboxFilesEndpoint | undefined;
  readonly #router: Router;
  #watcher: TlsWatcher | undefined;
  #closed: Promise<unknown> = Promise.resolve();

  constructor(options: HttpTransportOptions) {
    const { mcp, config, authenticator, operator, ledger, desk, forwards, health, metrics, fastPath = true } = options;
    const { http } = config;
    this.#options = options;
    const keepAliveMs = http.keepAliveSeconds * 1000;
    const { homes } = options;
    const cluster = homes && { homes, remote: new RemoteSessions(homes) };
    this.#endpoint = new McpEndpoint({
      mcp,
      fastPath,
      keepAliveMs,
      maxBodyBytes: http.maxBodyBytes,
      maxSessions: http.maxSessions,
      sessionIdleMs: http.sessionIdleSeconds * 1000,
      cluster,
    });
    this.#sse = new LegacySse({
      mcp,
      fastPath,
      keepAliveMs,
      maxBodyBytes: http.maxBodyBytes,
      maxStreams: http.maxSessions,
      cluster,
    });
    if (homes !== undefined) this.#serveRelayed(homes);
    const guard = new HostGuard({
      host: http.host,
      allowedHosts: http.allowedHosts,
      corsEnabled: http.cors.enabled,
      corsOrigins: http.cors.origins,
    });
    const stallMs = http.requestTimeoutSeconds * 1000;
    this.#files = options.files && new SandboxFilesEndpoint({ mcp, door: options.files, stallMs });
    this.#router = new Router({
      mcp,
      config,
      guard,
      authenticator,
      endpoint: this.#endpoint,
      sse: this.#sse,
      files: this.#files,
      health,
      metrics,
      dashboard: options.dashboard,
      ledger,
      sandboxes: operator && new OperatorSandboxesEndpoint({ mcp, door: operator }),
      operators: desk && new OperatorApi({ mcp, desk }),
      forwards: forwards && new ForwardEndpoint({ door: forwards, maxBodyBytes: http.maxBodyBytes }),
    });
  }

  /** Takes what clients of this server's sessions have sent to others. */
  #serveRelayed(homes: SessionHomes): void {
    const requests = new RelayedRequests({
      authenticator: this.#options.authenticator,
      beatMs: homes.leaseMs / BEATS_PER_LEASE,
      doors: {
        mcp: (request, exchange) => this.#endpoint.serveRelayed(request, exchange),
        sse: (request, exchange) => this.#sse.accept(request, exchange),
      },
    });
    homes.serveWith((message, line) => requests.serve(message, line));
  }

  get isTls(): boolean {
    return this.#options.config.http.tls.certFile !== "";
  }

  /** Opens the port and says under which address. */
  async listen(): Promise<string> {
    const { host, port, tls } = this.#options.config.http;
    const pair = this.isTls ? readTls(tls) : undefined;
    const bound = await this.#bind({ host: host === "localhost" ? "127.0.0.1" : host, port, pair });
    // Which of its two addresses "localhost" means is for each client to choose: a name must not lead to somebody else's port.
    if (host === "localhost") await this.#bind({ host: "::1", port: bound, pair }).catch(ignoreMissingIpv6);
    if (pair !== undefined) this.#watchCertificate(pair);
    const name = host.includes(":") ? `[${host}]` : host;
    return `${this.isTls ? "https" : "http"}://${name}:${bound}`;
  }

  /** Takes no new requests, lets running ones finish until the deadline, then cancels them. Connections stay open. */
  async drain(deadlineMs: number): Promise<void> {
    this.#watcher?.close();
    this.#router.drain();
    this.#closed = Promise.all(
      this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    );
    for (const server of this.#servers) server.closeIdleConnections();
    const drained = await this.#router.whenIdle(deadlineMs);
    if (!drained) {
      const open = this.#router.openRequests;
      this.#options.mcp.logger.warning("shutdown deadline passed, cancelling running requests", { open });
    }
    await Promise.all([this.#endpoint.close(), this.#sse.close()]);
  }

  /** After `drain`. Answers that are under way get a moment to reach their clients; one that does not read is cut off. */
  async close(): Promise<void> {
    const forEach = (act: (server: Server | HttpsServer) => void) => () => this.#servers.forEach(act);
    const sweep = setInterval(
      forEach((server) => server.closeIdleConnections()),
      SWEEP_MS,
    );
    const cut = setTimeout(
      forEach((server) => server.closeAllConnections()),
      LAST_WORDS_MS,
    );
    await this.#closed;
    clearInterval(sweep);
    clearTimeout(cut);
  }

  #watchCertificate(inUse: TlsPair): void {
    const { mcp, config } = this.#options;
    const onChange = (pair: TlsPair): void => {
      for (const server of this.#servers) if ("setSecureContext" in server) server.setSecureContext(toContext(pair));
    };
    this.#watcher = new TlsWatcher({ files: config.http.tls, inUse, logger: mcp.logger, onChange });
  }

  async #bind({ host, port, pair }: { host: string; port: number; pair: TlsPair | undefined }): Promise<number> {
    const server = this.#createServer(pair);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port }, () => {
        server.removeListener("error", reject);
        resolve();
      });
    });
    server.on("error", (error) => this.#options.mcp.logger.error("http server failed", { error }));
    this.#servers.push(server);
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : port;
  }

  #createServer(pair: TlsPair | undefined): Server | HttpsServer {
    const { http } = this.#options.config;
    const { tracing } = this.#options.mcp;
    const route = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#router.handle(request, response);
    const handle: typeof route =
      tracing === undefined
        ? route
        : (request, response) =>
            tracing.arrived(request.headers, () => {
              route(request, response);
            });
    const options = {
      headersTimeout: http.headersTimeoutSeconds * 1000,
      requestTimeout: http.requestTimeoutSeconds * 1000,
      connectionsCheckingInterval: 1000,
      joinDuplicateHeaders: true,
      keepAliveTimeout: 65_000,
      maxHeaderSize: 32 * 1024,
    };
    const server =
      pair === undefined
        ? createHttpServer(options, handle)
        : createHttpsServer({ ...options, ...toContext(pair) }, handle);
    server.maxConnections = http.maxConnections;
    server.on("clientError", (error, socket) => {
      // Node limits every request as a whole and knows no exception: it is made here.
      const isUpload = "code" in error && error.code === TOO_SLOW && this.#files?.isReceiving(socket) === true;
      if (!isUpload) refuseUnreadable(error, socket);
    });
    return server;
  }
}

function ignoreMissingIpv6(error: unknown): void {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== "EADDRNOTAVAIL" && code !== "EAFNOSUPPORT") throw error;
}

/** What Node could not read as a request has no response object; it is answered on the socket, unless an answer is under way. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  const message: unknown = "_httpMessage" in socket ? socket._httpMessage : undefined;
  const isAnswering = message instanceof ServerResponse && message.headersSent;
  if (!socket.writable || error.code === "ECONNRESET" || isAnswering) {
    socket.destroy();
    return;
  }
  const status = UNREADABLE[error.code ?? ""] ?? "400 Bad Request";
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

const UNREADABLE: Readonly<Record<string, string>> = {
  [TOO_SLOW]: "408 Request Timeout",
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
};
