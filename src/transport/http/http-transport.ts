import type { Authenticator } from "../../auth/authenticator.ts";
import type { ForwardReceiver } from "../../cluster/forward-receiver.ts";
import type { SessionOwners } from "../../cluster/session-owners.ts";
import type { Config } from "../../config/schema.ts";
import type { Ledger } from "../../governance/ledger/ledger.ts";
import type { OperatorActs } from "../../call/operator-acts.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import type { LazyDashboard } from "./dashboard-listener.ts";
import { ForwardEndpoint } from "./forward-endpoint.ts";
import { guardOf } from "./guards.ts";
import type { HealthSource } from "./health-routes.ts";
import type { HttpListener, HttpHandler } from "./http-listener.ts";
import { LegacySse } from "./legacy-sse.ts";
import { McpEndpoint } from "./mcp-endpoint.ts";
import type { MetricsSource } from "./metrics-route.ts";
import { OperatorApi, type OperatorService } from "./operator-api.ts";
import type { PeerUsers } from "./peer-users.ts";
import { RelayedRequests } from "./relayed-requests.ts";
import { RemoteSessions } from "./remote-sessions.ts";
import { Router } from "./router.ts";
import { type OperatorSandboxes, OperatorSandboxesEndpoint } from "./operator-sandboxes.ts";
import type { WorkspaceFiles } from "../../call/workspace-files.ts";
import { SandboxFilesEndpoint } from "./sandbox-files.ts";

export interface HttpTransportOptions {
  readonly mcp: Mcp;
  readonly config: Config;
  readonly listener: HttpListener;
  readonly authenticator: Authenticator;
  /** Present when only the user of the server may connect. */
  readonly peers?: PeerUsers | undefined;
  /** The files of sandboxes. */
  readonly files?: WorkspaceFiles | undefined;
  /** The record of calls, for operators. */
  readonly ledger?: Ledger | undefined;
  /** Records acts of operators. */
  readonly acts?: OperatorActs | undefined;
  /** Statistics and approvals. */
  readonly service?: OperatorService | undefined;
  /** The sandboxes of all clients, for operators. */
  readonly operator?: OperatorSandboxes | undefined;
  /** Receives the calls that other servers forward. */
  readonly forwards?: ForwardReceiver | undefined;
  /** Knows which server owns which session. */
  readonly sessionOwners?: SessionOwners | undefined;
  /** The health of the server and its dependencies. */
  readonly health?: HealthSource | undefined;
  readonly metrics?: MetricsSource | undefined;
  /** The dashboard. */
  readonly dashboard?: LazyDashboard | undefined;
}

const BEATS_PER_LEASE = 5;

/** Serves MCP over HTTP. To stop, it notifies clients, waits for running requests and then cancels them. */
export class HttpTransport {
  readonly #options: HttpTransportOptions;
  readonly #endpoint: McpEndpoint;
  readonly #sse: LegacySse;
  readonly #files: SandboxFilesEndpoint | undefined;
  readonly #router: Router;

  constructor(options: HttpTransportOptions) {
    const { mcp, config, authenticator, operator, ledger, service, forwards, health, metrics } = options;
    const { http } = config;
    this.#options = options;
    const keepAliveMs = http.keepAliveSeconds * 1000;
    const { sessionOwners: owners } = options;
    const cluster = owners && { owners, remote: new RemoteSessions(owners) };
    this.#endpoint = new McpEndpoint({
      mcp,
      keepAliveMs,
      maxBodyBytes: http.maxBodyBytes,
      maxSessions: http.maxSessions,
      sessionIdleMs: http.sessionIdleSeconds * 1000,
      cluster,
    });
    this.#sse = new LegacySse({
      mcp,
      keepAliveMs,
      maxBodyBytes: http.maxBodyBytes,
      maxStreams: http.maxSessions,
      cluster,
    });
    if (owners !== undefined) this.#serveRelayed(owners);
    const guard = guardOf(http);
    const stallMs = http.requestTimeoutSeconds * 1000;
    this.#files = options.files && new SandboxFilesEndpoint({ mcp, files: options.files, stallMs });
    this.#router = new Router({
      mcp,
      config,
      guard,
      authenticator,
      peers: options.peers,
      endpoint: this.#endpoint,
      sse: this.#sse,
      files: this.#files,
      health,
      metrics,
      dashboard: options.dashboard,
      ledger,
      acts: options.acts,
      sandboxes: operator && new OperatorSandboxesEndpoint({ mcp, sandboxes: operator }),
      operators: service && new OperatorApi({ mcp, service }),
      forwards: forwards && new ForwardEndpoint({ receiver: forwards, maxBodyBytes: http.maxBodyBytes }),
    });
  }

  /** Serves requests to sessions of this server that clients have sent to other servers. */
  #serveRelayed(owners: SessionOwners): void {
    const requests = new RelayedRequests({
      authenticator: this.#options.authenticator,
      beatMs: owners.leaseMs / BEATS_PER_LEASE,
      endpoints: {
        mcp: (request, exchange) => this.#endpoint.serveRelayed(request, exchange),
        sse: (request, exchange) => this.#sse.accept(request, exchange),
      },
    });
    owners.serveWith((message, line) => requests.serve(message, line));
  }

  /** Starts to serve the requests of the listener. Returns its URL. */
  serve(): string {
    const { listener } = this.#options;
    listener.serveWith({
      handle: this.#handler(),
      mayLast: (socket) => this.#files?.isReceiving(socket) === true,
    });
    return listener.url;
  }

  #handler(): HttpHandler["handle"] {
    const { tracing } = this.#options.mcp;
    const route: HttpHandler["handle"] = (request, response, connection) =>
      void this.#router.handle(request, response, connection);
    if (tracing === undefined) return route;
    return (request, response, connection) =>
      tracing.arrived(request.headers, () => route(request, response, connection));
  }

  /**
   * Rejects new requests, lets running ones finish until the deadline, then cancels them. The port stays open until
   * then, so that health checks report the shutdown and clients get an error with `retry-after`.
   */
  async drain(deadlineMs: number): Promise<void> {
    const { listener, mcp } = this.#options;
    this.#router.drain();
    listener.closeIdleConnections();
    const drained = await this.#router.whenIdle(deadlineMs);
    if (!drained) {
      const open = this.#router.openRequests;
      mcp.logger.warning("shutdown deadline passed, cancelling running requests", { open });
    }
    listener.stopAccepting();
    await Promise.all([this.#endpoint.close(), this.#sse.close()]);
  }
}
