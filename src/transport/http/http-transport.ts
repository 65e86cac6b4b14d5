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
import { HealthEndpoint, type HealthSource } from "./health-endpoint.ts";
import type { HttpListener, HttpHandler } from "./http-listener.ts";
import { LegacySse } from "./legacy-sse.ts";
import { McpEndpoint } from "./mcp-endpoint.ts";
import { LedgerEndpoint } from "./ledger-endpoint.ts";
import { MetricsEndpoint, type MetricsSource } from "./metrics-endpoint.ts";
import { OperatorApi, type OperatorService } from "./operator-api.ts";
import type { PeerUsers } from "./peer-users.ts";
import { RelayedRequests } from "./relayed-requests.ts";
import { RemoteSessions } from "./remote-sessions.ts";
import { OpenRequests } from "../open-requests.ts";
import { routesOf } from "./http-routes.ts";
import type { Route } from "./route-table.ts";
import { Router } from "./router.ts";
import { SkillsEndpoint } from "./skills.ts";
import { StatusEndpoint } from "./status-endpoint.ts";
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
  readonly #requests = new OpenRequests();
  readonly #router: Router;

  constructor(options: HttpTransportOptions) {
    const { mcp, config, authenticator, metrics } = options;
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
    const stallMs = http.requestTimeoutSeconds * 1000;
    this.#files = options.files && new SandboxFilesEndpoint({ mcp, files: options.files, stallMs });
    this.#router = new Router({
      mcp,
      config,
      guard: guardOf(http),
      authenticator,
      peers: options.peers,
      routes: this.#routes(),
      requests: this.#requests,
      acts: options.acts,
      metrics,
    });
  }

  #routes(): readonly Route[] {
    const { mcp, config, operator, ledger, service, forwards, health, metrics, acts, dashboard } = this.#options;
    const status = new StatusEndpoint({
      mcp,
      config,
      health,
      sessionCount: () => this.#endpoint.sessions.size + this.#sse.size,
    });
    return routesOf({
      mcp: this.#endpoint,
      sse: this.#sse,
      status,
      health: new HealthEndpoint({ health, version: mcp.serverInfo.version, requests: this.#requests }),
      metadata: config.auth.enabled ? status : undefined,
      metrics: metrics && new MetricsEndpoint(metrics, config),
      files: this.#files,
      skills: mcp.servesSkills ? new SkillsEndpoint(mcp) : undefined,
      sandboxes: operator && new OperatorSandboxesEndpoint({ mcp, sandboxes: operator }),
      ledger: ledger && new LedgerEndpoint({ ledger, acts }),
      operators: service && new OperatorApi({ mcp, service }),
      forwards: forwards && new ForwardEndpoint({ receiver: forwards, maxBodyBytes: config.http.maxBodyBytes }),
      dashboard,
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
    this.#requests.drain();
    listener.closeIdleConnections();
    const drained = await this.#requests.whenIdle(deadlineMs);
    if (!drained) {
      const open = this.#requests.count;
      mcp.logger.warning("shutdown deadline passed, cancelling running requests", { open });
    }
    listener.stopAccepting();
    await Promise.all([this.#endpoint.close(), this.#sse.close()]);
  }
}
