import type { Server } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { ForwardReceiver } from "../../cluster/forward-receiver.ts";
import type { SessionOwners } from "../../cluster/session-owners.ts";
import type { Config } from "../../config/schema.ts";
import type { Ledger } from "../../governance/ledger/ledger.ts";
import type { OperatorActs } from "../../call/operator-acts.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import type { DashboardGate } from "./dashboard-gate.ts";
import { ForwardEndpoint } from "./forward-endpoint.ts";
import { guardOf } from "./guards.ts";
import type { HealthDoor } from "./health-routes.ts";
import { type HttpDoor, type HttpHandler, openHttpDoor } from "./http-door.ts";
import { LegacySse } from "./legacy-sse.ts";
import { McpEndpoint } from "./mcp-endpoint.ts";
import type { MetricsDoor } from "./metrics-route.ts";
import { OperatorApi, type OperatorService } from "./operator-api.ts";
import type { PeerUsers } from "./peer-users.ts";
import { RelayedRequests } from "./relayed-requests.ts";
import { RemoteSessions } from "./remote-sessions.ts";
import { Router } from "./router.ts";
import { type OperatorDoor, OperatorSandboxesEndpoint } from "./operator-sandboxes.ts";
import type { WorkspaceFiles } from "../../call/workspace-files.ts";
import { SandboxFilesEndpoint } from "./sandbox-files.ts";
import type { CertificateInUse } from "../../operator/health-checks.ts";
import { type TlsPair, TlsWatcher, toContext } from "./tls.ts";

export interface HttpTransportOptions {
  readonly mcp: Mcp;
  readonly config: Config;
  readonly authenticator: Authenticator;
  /** Where only the server's own user may connect. */
  readonly peers?: PeerUsers | undefined;
  /** The files of sandboxes; without it there is no door to them. */
  readonly files?: WorkspaceFiles | undefined;
  /** The record of calls, for operators; without it there is no door to it. */
  readonly ledger?: Ledger | undefined;
  /** Where it is on record what operators do. */
  readonly acts?: OperatorActs | undefined;
  /** Statistics and approvals; without it there is no door to them. */
  readonly desk?: OperatorService | undefined;
  /** Everybody's sandboxes, for operators. */
  readonly operator?: OperatorDoor | undefined;
  /** Calls of other servers; without it none are taken. */
  readonly forwards?: ForwardReceiver | undefined;
  /** Sessions of other servers, and the way to those of this one. */
  readonly homes?: SessionOwners | undefined;
  /** How everything is that the server depends on. */
  readonly health?: HealthDoor | undefined;
  readonly metrics?: MetricsDoor | undefined;
  /** The page for operators. */
  readonly dashboard?: DashboardGate | undefined;
  /** A port that is open already. */
  readonly door?: HttpDoor | undefined;
}

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
    const { mcp, config, authenticator, operator, ledger, desk, forwards, health, metrics } = options;
    const { http } = config;
    this.#options = options;
    const keepAliveMs = http.keepAliveSeconds * 1000;
    const { homes } = options;
    const cluster = homes && { homes, remote: new RemoteSessions(homes) };
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
    if (homes !== undefined) this.#serveRelayed(homes);
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
      sandboxes: operator && new OperatorSandboxesEndpoint({ mcp, door: operator }),
      operators: desk && new OperatorApi({ mcp, desk }),
      forwards: forwards && new ForwardEndpoint({ door: forwards, maxBodyBytes: http.maxBodyBytes }),
    });
  }

  /** Takes what clients of this server's sessions have sent to others. */
  #serveRelayed(homes: SessionOwners): void {
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

  /** Absent without TLS, and before it listens. */
  get certificate(): CertificateInUse | undefined {
    return this.#watcher?.certificate;
  }

  /** Looks at the certificate now, in place of within two seconds. */
  refresh(): void {
    this.#watcher?.look();
  }

  /** Serves from now on what comes to the port, opens it where nobody has, and says under which address. */
  async listen(): Promise<string> {
    const { mcp, config } = this.#options;
    const door = this.#options.door ?? (await openHttpDoor(config.http, mcp.logger));
    this.#servers.push(...door.servers);
    if (door.pair !== undefined) this.#watchCertificate(door.pair);
    door.serveWith({
      handle: this.#handler(),
      mayLast: (socket) => this.#files?.isReceiving(socket) === true,
    });
    return door.url;
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
   * Takes no new requests, lets running ones finish until the deadline, then cancels them. The port stays open until then:
   * whoever asks how the server is must hear that it stops, and everybody else that they are to come again.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.#router.drain();
    for (const server of this.#servers) server.closeIdleConnections();
    const drained = await this.#router.whenIdle(deadlineMs);
    if (!drained) {
      const open = this.#router.openRequests;
      this.#options.mcp.logger.warning("shutdown deadline passed, cancelling running requests", { open });
    }
    this.#watcher?.close();
    this.#closed = Promise.all(
      this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    );
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
}
