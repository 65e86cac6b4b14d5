import { createServer as createHttpServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import { lstat, rm } from "node:fs/promises";
import { connect, type ListenOptions, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Config } from "../../config/schema.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { ConnectionLimits } from "./connection-limits.ts";
import { onClose, TracedResponse } from "./exchange-io.ts";
import { startingHandler } from "./starting-handler.ts";
import { readTls, type TlsPair, TlsWatcher, toContext } from "./tls.ts";
import type { CertificateInUse } from "../../operator/health-checks.ts";

export interface HttpHandler {
  /** On a reserved connection only health checks and operators are served. */
  handle(request: IncomingMessage, response: ServerResponse, connection: { readonly isReserved: boolean }): void;
  /** Whether the request on this socket may exceed the request timeout. */
  mayLast(socket: Duplex): boolean;
}

const ANSWERED_TO_ANYONE = /^\/(?:health|\.well-known\/|dashboard(?:\/assets\/|\/?(?:\?|$)))/;
const TOO_SLOW = "ERR_HTTP_REQUEST_TIMEOUT";
/** The time in which a client can read why its request was refused. */
const LINGER_MS = 2000;
const LAST_WORDS_MS = 500;
const SWEEP_MS = 10;

/** Opens the port. Until `serveWith` is called, every request gets 503: the server is starting. */
export async function openHttpListener(http: Config["http"], logger: Logger): Promise<HttpListener> {
  const listener = new HttpListener(http, logger);
  try {
    await listener.listen();
    return listener;
  } catch (error) {
    await listener.close();
    throw error;
  }
}

/** The port or Unix socket of the server, with its TLS certificate and its limits on connections. */
export class HttpListener {
  readonly #servers: (Server | HttpsServer)[] = [];
  readonly #tls: TlsWatcher | undefined;
  readonly #http: Config["http"];
  readonly #logger: Logger;
  readonly #limits: ConnectionLimits;
  #handler: HttpHandler;
  #port = 0;
  #closed: Promise<unknown> | undefined;

  constructor(http: Config["http"], logger: Logger) {
    this.#http = http;
    this.#logger = logger;
    this.#limits = new ConnectionLimits(http, logger);
    this.#handler = startingHandler(http);
    this.#tls = http.tls.certFile === "" ? undefined : this.#watchCertificate();
  }

  /** Absent without TLS. */
  get certificate(): CertificateInUse | undefined {
    return this.#tls?.certificate;
  }

  /** Reads the certificate files now, before the next poll. */
  refresh(): void {
    this.#tls?.look();
  }

  get url(): string {
    const { host, socket } = this.#http;
    // The URL for the Host header. Clients connect by the path of the socket.
    if (socket !== "") return "http://localhost";
    const name = host.includes(":") ? `[${host}]` : host;
    return `${this.#tls === undefined ? "http" : "https"}://${name}:${this.#port}`;
  }

  serveWith(handler: HttpHandler): void {
    this.#handler = handler;
  }

  async listen(): Promise<void> {
    const { host, port, socket } = this.#http;
    if (socket !== "") return this.#bindSocket(socket);
    this.#port = await this.#bind(host === "localhost" ? "127.0.0.1" : host, port);
    // Clients may resolve "localhost" to either loopback address, so the server binds both: otherwise the other one
    // could belong to another program.
    if (host === "localhost") await this.#bind("::1", this.#port).catch(ignoreMissingIpv6);
  }

  closeIdleConnections(): void {
    for (const server of this.#servers) server.closeIdleConnections();
  }

  /** Refuses new connections from now on. */
  stopAccepting(): void {
    this.#tls?.close();
    this.#closed ??= Promise.all(
      this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    );
  }

  /** Waits briefly for responses in flight, then closes the remaining connections. */
  async close(): Promise<void> {
    this.stopAccepting();
    const sweep = setInterval(() => this.closeIdleConnections(), SWEEP_MS);
    const cut = setTimeout(() => {
      for (const server of this.#servers) server.closeAllConnections();
    }, LAST_WORDS_MS);
    await this.#closed;
    clearInterval(sweep);
    clearTimeout(cut);
  }

  #watchCertificate(): TlsWatcher {
    const files = this.#http.tls;
    const onChange = (pair: TlsPair): void => {
      for (const server of this.#servers) if ("setSecureContext" in server) server.setSecureContext(toContext(pair));
    };
    return new TlsWatcher({ files, inUse: readTls(files), logger: this.#logger, onChange });
  }

  async #bindSocket(path: string): Promise<void> {
    await removeDeadSocket(path);
    // The umask applies when the socket is created, so that at no time another user can connect.
    const umask = process.umask(0o177);
    const opened = this.#open({ path });
    process.umask(umask);
    await opened;
  }

  async #open(at: ListenOptions): Promise<Server | HttpsServer> {
    const server = this.#createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(at, () => {
        server.removeListener("error", reject);
        resolve();
      });
    });
    server.on("error", (error) => this.#logger.error("http server failed", { error }));
    this.#servers.push(server);
    return server;
  }

  async #bind(host: string, port: number): Promise<number> {
    const server = await this.#open({ host, port });
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : port;
  }

  #createServer(): Server | HttpsServer {
    const http = this.#http;
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      const { isReserved, end } = this.#limits.begin(request.socket);
      // A public response does not protect its connection from being replaced, so a client that does not read it holds
      // no slot.
      if (ANSWERED_TO_ANYONE.test(request.url ?? "")) end();
      else onClose(response, end);
      this.#handler.handle(request, response, { isReserved });
    };
    const options = {
      headersTimeout: http.headersTimeoutSeconds * 1000,
      requestTimeout: http.requestTimeoutSeconds * 1000,
      connectionsCheckingInterval: 1000,
      joinDuplicateHeaders: true,
      keepAliveTimeout: 65_000,
      maxHeaderSize: 32 * 1024,
      ServerResponse: TracedResponse,
    };
    const server =
      this.#tls === undefined
        ? createHttpServer(options, handle)
        : createHttpsServer(
            { ...options, handshakeTimeout: options.headersTimeout, ...toContext(this.#tls.pair) },
            handle,
          );
    const isUnix = http.socket !== "";
    server.on("connection", (socket: Socket) => this.#limits.add(socket, { isUnix }));
    server.setTimeout(options.requestTimeout, closeUnlessAnswering);
    server.on("clientError", (error, socket) => {
      // Node applies its request timeout to every request. Uploads are exempt here.
      const isUpload = "code" in error && error.code === TOO_SLOW && this.#handler.mayLast(socket);
      if (!isUpload) refuseUnreadable(error, socket);
    });
    return server;
  }
}

/** Removes the socket of a server that was killed. The socket of a running server stays, and binding it fails. */
async function removeDeadSocket(path: string): Promise<void> {
  const isDead = await new Promise<boolean>((resolve) => {
    const probe = connect({ path });
    probe
      .once("connect", () => resolve(false))
      .once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
    probe.once("connect", () => probe.destroy());
  });
  // A regular file refuses connections too, so only a socket is removed.
  if (isDead && (await lstat(path)).isSocket()) await rm(path);
}

function ignoreMissingIpv6(error: unknown): void {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== "EADDRNOTAVAIL" && code !== "EAFNOSUPPORT") throw error;
}

/**
 * After a timeout in both directions: closes a connection without a request, and one whose client does not read its
 * response. A call in progress or a stream may be silent for longer.
 */
function closeUnlessAnswering(socket: Socket): void {
  const message: unknown = "_httpMessage" in socket ? socket._httpMessage : undefined;
  if (message instanceof ServerResponse && !message.writableEnded) return;
  socket.destroy();
}

/**
 * Refuses what Node could not parse as a request. There is no response object, so the response is written to the
 * socket, unless another one is in progress.
 */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  const message: unknown = "_httpMessage" in socket ? socket._httpMessage : undefined;
  const isAnswering = message instanceof ServerResponse && message.headersSent;
  if (!socket.writable || error.code === "ECONNRESET" || isAnswering) {
    socket.destroy();
    return;
  }
  const status = UNREADABLE[error.code ?? ""] ?? "400 Bad Request";
  // A client that neither reads the response nor closes its side would keep the connection open.
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once("close", () => clearTimeout(timer));
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

const UNREADABLE: Readonly<Record<string, string>> = {
  [TOO_SLOW]: "408 Request Timeout",
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
};
