import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { Config } from "../../config/schema.ts";
import type { Mcp } from "../../protocol/mcp.ts";
import { HostGuard } from "./guards.ts";
import { LegacySse } from "./legacy-sse.ts";
import { McpEndpoint } from "./mcp-endpoint.ts";
import { Router } from "./router.ts";
import { readTls, watchTls } from "./tls.ts";

export interface HttpTransportOptions {
  readonly mcp: Mcp;
  readonly config: Config;
  readonly authenticator: Authenticator;
  /** Off only in the test that holds the fast path against the SDK's. */
  readonly fastPath?: boolean;
}

/** Stopping is said to clients, then waited for, then enforced. */
export class HttpTransport {
  readonly #options: HttpTransportOptions;
  readonly #server: Server | HttpsServer;
  readonly #endpoint: McpEndpoint;
  readonly #sse: LegacySse;
  readonly #router: Router;
  #unwatch: () => void = () => undefined;

  constructor(options: HttpTransportOptions) {
    const { mcp, config, authenticator, fastPath = true } = options;
    const { http } = config;
    this.#options = options;
    const keepAliveMs = http.keepAliveSeconds * 1000;
    this.#endpoint = new McpEndpoint({
      mcp,
      fastPath,
      keepAliveMs,
      maxBodyBytes: http.maxBodyBytes,
      maxSessions: http.maxSessions,
      sessionIdleMs: http.sessionIdleSeconds * 1000,
    });
    this.#sse = new LegacySse({ mcp, keepAliveMs, maxBodyBytes: http.maxBodyBytes, maxStreams: http.maxSessions });
    const guard = new HostGuard({
      host: http.host,
      allowedHosts: http.allowedHosts,
      corsEnabled: http.cors.enabled,
      corsOrigins: http.cors.origins,
    });
    this.#router = new Router({ mcp, config, guard, authenticator, endpoint: this.#endpoint, sse: this.#sse });
    this.#server = this.#createServer();
  }

  get isTls(): boolean {
    return this.#options.config.http.tls.certFile !== "";
  }

  /** Opens the port and says under which address. */
  async listen(): Promise<string> {
    const { host, port } = this.#options.config.http;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port }, () => {
        this.#server.removeListener("error", reject);
        resolve();
      });
    });
    this.#server.on("error", (error) => this.#options.mcp.logger.error("http server failed", { error }));
    const address = this.#server.address();
    const bound = typeof address === "object" ? address?.port : undefined;
    const name = host.includes(":") ? `[${host}]` : host;
    return `${this.isTls ? "https" : "http"}://${name}:${bound ?? port}`;
  }

  /** Takes no new requests, lets running ones finish until the deadline, then cancels them. */
  async close(deadlineMs: number): Promise<void> {
    this.#unwatch();
    this.#router.drain();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const drained = await this.#router.whenIdle(deadlineMs);
    if (!drained)
      this.#options.mcp.logger.warning("shutdown deadline passed, cancelling running requests", {
        open: this.#router.openRequests,
      });
    await Promise.all([this.#endpoint.close(), this.#sse.close()]);
    this.#server.closeIdleConnections();
    setImmediate(() => this.#server.closeAllConnections());
    await closed;
  }

  #createServer(): Server | HttpsServer {
    const { http } = this.#options.config;
    const handle = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#router.handle(request, response);
    const options = {
      headersTimeout: http.headersTimeoutSeconds * 1000,
      requestTimeout: http.requestTimeoutSeconds * 1000,
      connectionsCheckingInterval: 1000,
      keepAliveTimeout: 65_000,
      maxHeaderSize: 32 * 1024,
    };
    const server = this.isTls
      ? createHttpsServer({ ...options, ...readTls(http.tls) }, handle)
      : createHttpServer(options, handle);
    server.maxConnections = http.maxConnections;
    server.on("clientError", (_error, socket) => {
      if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    });
    if (this.isTls && "setSecureContext" in server) {
      this.#unwatch = watchTls(http.tls, this.#options.mcp.logger, (context) => server.setSecureContext(context));
    }
    return server;
  }
}
