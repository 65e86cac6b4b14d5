import type { IncomingMessage, ServerResponse } from "node:http";
import type { Authenticator } from "../../auth/authenticator.ts";
import { challenge, protectedResourceMetadata, requireScope } from "../../auth/protected-resource.ts";
import { ADMIN_SCOPE, ANONYMOUS, type Principal } from "../../auth/principal.ts";
import { FORWARD_PATH } from "../../cluster/forward-connection.ts";
import type { Config } from "../../config/schema.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Ledger } from "../../governance/ledger/ledger.ts";
import type { OperatorActs } from "../../call/operator-acts.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { traceIdFrom } from "../../mcp/request-observer.ts";
import { SUPPORTED_VERSIONS } from "../../mcp/versions.ts";
import { OpenRequests } from "../open-requests.ts";
import { ClientConnections, noConnectionLeft } from "./connection-limits.ts";
import { type HostGuard, addCorsHeaders, answerPreflight } from "./guards.ts";
import { header, type HttpExchange, sendEmpty, sendError, sendJson, tellTraceId } from "./exchange-io.ts";
import type { LazyDashboard } from "./dashboard-listener.ts";
import type { ForwardEndpoint } from "./forward-endpoint.ts";
import { type HealthSource, healthRoutes } from "./health-routes.ts";
import { ledgerRoutes } from "./ledger-routes.ts";
import { METRICS_PATH, type MetricsSource, sendMetrics } from "./metrics-route.ts";
import type { OperatorApi } from "./operator-api.ts";
import type { PeerUsers } from "./peer-users.ts";
import { refusalHeaders } from "./quota-headers.ts";
import { sendSkill, SKILL_PATH } from "./skills.ts";
import type { LegacySse } from "./legacy-sse.ts";
import type { McpEndpoint } from "./mcp-endpoint.ts";
import { type OperatorSandboxesEndpoint, SANDBOX_PATH, SANDBOXES_PATH } from "./operator-sandboxes.ts";
import { onlyHeader, readTarget, type RequestTarget } from "./request-target.ts";
import { FILE_PATH, type SandboxFilesEndpoint } from "./sandbox-files.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { ClientAddresses } from "./client-address.ts";

export interface RouterOptions {
  readonly mcp: Mcp;
  readonly config: Config;
  readonly guard: HostGuard;
  readonly authenticator: Authenticator;
  /** Present when only the server's own user may connect. */
  readonly peers?: PeerUsers | undefined;
  readonly endpoint: McpEndpoint;
  readonly sse: LegacySse;
  /** Absent when sandboxes are disabled. */
  readonly files: SandboxFilesEndpoint | undefined;
  readonly ledger?: Ledger | undefined;
  readonly acts?: OperatorActs | undefined;
  /** Absent without governance. */
  readonly operators?: OperatorApi | undefined;
  readonly sandboxes: OperatorSandboxesEndpoint | undefined;
  /** Absent on a single server. */
  readonly forwards?: ForwardEndpoint | undefined;
  readonly health?: HealthSource | undefined;
  /** Absent when the dashboard is disabled. */
  readonly dashboard?: LazyDashboard | undefined;
  /** Absent when metrics are disabled. */
  readonly metrics?: MetricsSource | undefined;
}

type Serve = (exchange: HttpExchange, target: RequestTarget) => void | Promise<void>;

interface Route {
  readonly methods: Readonly<Record<string, Serve>>;
  /** Needs no token: for load balancers, and for clients that are about to get a token. */
  readonly isOpen?: boolean;
  /** Served during shutdown too, because health checks must report it. */
  readonly isAlwaysServed?: boolean;
  /** Requires the operator's scope: it shows or changes what belongs to other callers. */
  readonly isForOperators?: boolean;
}

interface Incoming extends Pick<HttpExchange, "request" | "response" | "traceId" | "release"> {
  /** Whether all connections except those for health checks and operators are in use. */
  readonly isReserved: boolean;
}

const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource";
const MAX_LABEL_CHARS = 128;
const HEALTH_PATH = /^\/health(?:\/|$)/;
/**
 * Refusals on other paths are not recorded: file paths contain the id of a sandbox, and each transfer has its own
 * ledger row.
 */
const NOTED_PATH = /^\/(?:api|mcp|metrics)(?:\/|$)/;
const MAX_NOTED_CHARS = 128;

/** Every HTTP request passes the same guards, in this order: host and origin, method, identity, scope. */
export class Router {
  readonly #options: RouterOptions;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #patterns: readonly (readonly [RegExp, Route])[];
  readonly #refusals: RefusedRequests;
  readonly #startedAt: number = Date.now();
  readonly #open = new OpenRequests();
  readonly #clients: ClientConnections;
  #draining = false;

  constructor(options: RouterOptions) {
    this.#options = options;
    const { mcp, metrics, config } = options;
    this.#refusals = new RefusedRequests({ logger: mcp.logger, metrics, trustedProxies: config.http.trustedProxies });
    this.#clients = new ClientConnections(config.http.maxConnectionsPerClient);
    this.#routes = this.#makeRoutes();
    this.#patterns = this.#makePatterns();
  }

  get openRequests(): number {
    return this.#open.count;
  }

  /** From now on every new request is rejected with `shutting_down`. */
  drain(): void {
    this.#draining = true;
  }

  whenIdle(deadlineMs: number): Promise<boolean> {
    return this.#open.whenIdle(deadlineMs);
  }

  async handle(
    request: IncomingMessage,
    response: ServerResponse,
    { isReserved }: { readonly isReserved: boolean },
  ): Promise<void> {
    const traceId = traceIdFrom(request.headers["traceparent"]);
    tellTraceId(response, traceId);
    // Shutdown waits for calls. It does not wait for streams, which stay open as long as their clients: it ends them.
    const isCall = request.method === "POST" || request.method === "PUT";
    const release = isCall ? this.#open.open() : () => undefined;
    if (this.#draining) response.shouldKeepAlive = false;
    try {
      await this.#serve({ request, response, traceId, release, isReserved });
    } catch (thrown) {
      this.#fail(thrown, request, response, traceId);
    } finally {
      release();
    }
  }

  async #serve(incoming: Incoming): Promise<void> {
    const { guard, authenticator } = this.#options;
    const { request, response, traceId, release } = incoming;
    const target = readTarget(request);
    await this.#checkPeer(request, target);
    const guarded = this.#takeGuarded(incoming, target);
    if (guarded !== undefined) return guarded;
    const route = this.#routes.get(target.path) ?? this.#patterns.find(([pattern]) => pattern.test(target.path))?.[1];
    addCorsHeaders(request, response, guard);
    guard.check(target.authority, request.headers.origin);
    if (route === undefined) {
      throw new OwlError("route_not_found", `there is nothing at ${JSON.stringify(target.path.slice(0, 128))}`);
    }
    if (answerPreflight(request, response, () => methodsOf(route))) return;
    const serve = route.methods[request.method ?? ""];
    if (serve === undefined) return this.#refuseMethod(request, response, { allowed: methodsOf(route), traceId });
    if (route.isAlwaysServed !== true) this.#assertServing();
    const known = route.isOpen === true ? ANONYMOUS : authenticator.authenticate(onlyHeader(request, "authorization"));
    const principal = known instanceof Promise ? await known : known;
    const label = labelOf(request);
    const exchange = { request, response, traceId, release, principal, label };
    await this.#answer(exchange, incoming, { route, serve, target });
  }

  async #answer(
    exchange: HttpExchange,
    incoming: Incoming,
    { route, serve, target }: { readonly route: Route; readonly serve: Serve; readonly target: RequestTarget },
  ): Promise<void> {
    try {
      this.#admit(route, exchange, incoming);
      await serve(exchange, target);
    } catch (thrown) {
      this.#noteRefused(toOwlError(thrown), exchange, target.path);
      throw thrown;
    }
  }

  /** Health paths are public: they show nothing about calls, and process supervisors run as other users. */
  #checkPeer({ socket }: IncomingMessage, { path }: RequestTarget): void | Promise<void> {
    return HEALTH_PATH.test(path) ? undefined : this.#options.peers?.check(socket);
  }

  /**
   * Endpoints with their own authentication: servers use the cluster key, operators a session. Tokens are not accepted
   * here.
   */
  #takeGuarded({ request, response, release, isReserved }: Incoming, target: RequestTarget): Promise<void> | undefined {
    const { forwards, dashboard } = this.#options;
    const isForward = target.path === FORWARD_PATH && forwards !== undefined;
    if (!isForward && dashboard?.serves(target.path) !== true) return undefined;
    this.#assertServing();
    if (isForward && isReserved) throw noConnectionLeft();
    return isForward ? forwards.post(request, response, release) : dashboard?.handle(request, response, target);
  }

  /**
   * Records refused access to operator endpoints and to sessions of other callers. Calls have their own ledger rows.
   */
  #noteRefused(refusal: OwlError, { principal, request, traceId }: HttpExchange, path: string): void {
    const { kind } = refusal;
    if (!NOTED_PATH.test(path) || (kind !== "forbidden" && kind !== "session_not_found")) return;
    const args = { method: request.method ?? "", path: path.slice(0, MAX_NOTED_CHARS) };
    this.#options.acts?.note({ by: principal.id, transport: "http", name: "request.refused", args, traceId, refusal });
  }

  #assertServing(): void {
    if (this.#draining) throw new OwlError("shutting_down", "the server is stopping");
  }

  /** Runs before the body is read, so that a flood of requests costs little. */
  #admit(
    route: Route,
    asker: { readonly principal: Principal; readonly label: string | undefined },
    incoming: Incoming,
  ): void {
    this.#options.mcp.tracing?.identified();
    if (route.isOpen === true) return;
    this.#clients.open(asker.principal, incoming);
    if (route.isForOperators === true) this.#assertOperator(asker.principal);
    this.#options.mcp.pipeline.governance?.governor.assertNoFlood(asker);
  }

  /** With auth off all callers are the same principal, so none of them can be an operator. */
  #assertOperator(principal: Principal): void {
    if (this.#options.config.auth.enabled) return requireScope(principal, ADMIN_SCOPE);
    throw new OwlError("forbidden", "this is for operators, and with auth off nobody is known to be one", {
      facts: { reason: "auth_disabled" },
      hint: `turn auth.enabled on and send a token with the scope ${ADMIN_SCOPE}, or run \`owlclaw mcp-server sandboxes list\` on the server's machine`,
    });
  }

  #makeRoutes(): ReadonlyMap<string, Route> {
    const { endpoint, sse, config, sandboxes, health, mcp, metrics } = this.#options;
    const readMetrics =
      (source: MetricsSource): Serve =>
      (exchange) =>
        sendMetrics(source, config, exchange);
    const status: Serve = async (exchange) => sendJson(exchange.response, 200, await this.#status(exchange));
    const list: Route | undefined = sandboxes && {
      isForOperators: true,
      methods: { GET: (exchange) => sandboxes.list(exchange) },
    };
    const metadata: Route = { isOpen: true, methods: { GET: (exchange) => this.#sendMetadata(exchange) } };
    return new Map<string, Route>([
      [
        "/mcp",
        {
          methods: {
            POST: (exchange) => endpoint.post(exchange),
            GET: (exchange, target) =>
              endpoint.isForStream(exchange) ? endpoint.get(exchange) : status(exchange, target),
            DELETE: (exchange) => endpoint.delete(exchange),
          },
        },
      ],
      ["/mcp/sse", { methods: { GET: (exchange) => sse.open(exchange) } }],
      [
        "/mcp/messages",
        { methods: { POST: (exchange, { query }) => sse.post(exchange, new URLSearchParams(query).get("sessionId")) } },
      ],
      ...(metrics === undefined ? [] : [[METRICS_PATH, { methods: { GET: readMetrics(metrics) } }] as const]),
      ...healthRoutes({ health, version: mcp.serverInfo.version, isDraining: () => this.#draining }),
      ...(config.auth.enabled
        ? [[RESOURCE_METADATA_PATH, metadata] as const, [`${RESOURCE_METADATA_PATH}/mcp`, metadata] as const]
        : []),
      ...(list === undefined ? [] : [[SANDBOXES_PATH, list] as const]),
    ]);
  }

  #makePatterns(): readonly (readonly [RegExp, Route])[] {
    const { files, sandboxes, mcp, ledger, operators } = this.#options;
    const patterns: (readonly [RegExp, Route])[] = [
      ...ledgerRoutes(ledger, this.#options.acts),
      ...(operators?.routes() ?? []),
    ];
    if (files !== undefined) {
      const methods: Route["methods"] = {
        GET: (exchange, target) => files.get(exchange, target),
        HEAD: (exchange, target) => files.get(exchange, target),
        PUT: (exchange, target) => files.put(exchange, target),
      };
      patterns.push([FILE_PATH, { methods }]);
    }
    if (mcp.servesSkills) {
      const read: Serve = (exchange, target) => sendSkill(mcp, exchange, target);
      patterns.push([SKILL_PATH, { methods: { GET: read, HEAD: read } }]);
    }
    if (sandboxes !== undefined) {
      const methods: Route["methods"] = { DELETE: (exchange, target) => sandboxes.destroy(exchange, target) };
      patterns.push([SANDBOX_PATH, { isForOperators: true, methods }]);
    }
    return patterns;
  }

  async #status({ principal, label }: HttpExchange): Promise<Record<string, unknown>> {
    const { mcp, endpoint, sse, config, health } = this.#options;
    const report = await health?.report();
    return {
      status: report === undefined || report.status === "ok" ? "ok" : "degraded",
      ...(report && { checks: report.checks }),
      server: mcp.serverInfo,
      protocolVersions: SUPPORTED_VERSIONS,
      uptimeSeconds: Math.round((Date.now() - this.#startedAt) / 1000),
      sessions: endpoint.sessions.size + sse.size,
      tools: mcp.pipeline.view.toolCount({ principal, label }),
      auth: config.auth.enabled,
    };
  }

  #sendMetadata({ request, response }: HttpExchange): void {
    const { issuer } = this.#options.config.auth.jwt;
    sendJson(
      response,
      200,
      protectedResourceMetadata({ resource: `${this.#origin(request)}/mcp`, issuer, scopes: [] }),
    );
  }

  #origin({ headers }: IncomingMessage): string {
    return `${this.#options.config.http.tls.certFile === "" ? "http" : "https"}://${headers.host ?? "localhost"}`;
  }

  #refuseMethod(
    request: IncomingMessage,
    response: ServerResponse,
    { allowed, traceId }: { readonly allowed: string; readonly traceId: string },
  ): void {
    if (request.method === "OPTIONS") return sendEmpty(response, 204, { allow: `${allowed}, OPTIONS` });
    const error = new OwlError("method_not_allowed", `${request.method} is not allowed here`);
    sendError(response, error, { traceId, withStack: false, headers: { allow: `${allowed}, OPTIONS` } });
  }

  #fail(thrown: unknown, request: IncomingMessage, response: ServerResponse, traceId: string): void {
    const { mcp } = this.#options;
    const error = toOwlError(thrown);
    if (error.kind === "internal") mcp.logger.error("request failed", { trace_id: traceId, error: thrown });
    else this.#refusals.add(error, request, traceId);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const headers: Record<string, string> = {};
    const isLimited = error.kind === "governance_denied" && error.facts["retry_after"] !== undefined;
    if (isLimited) Object.assign(headers, refusalHeaders(error.facts));
    if (error.kind === "unauthorized" || error.facts["reason"] === "insufficient_scope") {
      headers["www-authenticate"] = challenge(error, {
        resourceMetadataUrl: `${this.#origin(request)}${RESOURCE_METADATA_PATH}/mcp`,
      });
    }
    if (error.kind === "shutting_down" || error.kind === "overloaded") headers["retry-after"] = "1";
    if (error.facts["reason"] === "connections") headers["connection"] = "close";
    // The unread rest of a refused body would be parsed as the next request.
    if (!request.complete) headers["connection"] = "close";
    sendError(response, error, { traceId, withStack: mcp.withStack, headers, ...(isLimited && { status: 429 }) });
  }
}

function methodsOf({ methods }: Route): string {
  return Object.keys(methods).join(", ");
}

function labelOf(request: IncomingMessage): string | undefined {
  return header(request, "x-mcp-client-id")?.slice(0, MAX_LABEL_CHARS);
}

const MAX_PATH_CHARS = 128;

export interface RefusedRequestsOptions {
  readonly logger: Logger;
  readonly metrics: Pick<MetricsSource, "loginsRefused"> | undefined;
  readonly trustedProxies: readonly string[];
}

/** Logs and counts requests that were refused before any call, with their client address. */
export class RefusedRequests {
  readonly #options: RefusedRequestsOptions;
  readonly #addresses: ClientAddresses;

  constructor(options: RefusedRequestsOptions) {
    this.#options = options;
    this.#addresses = new ClientAddresses(options.trustedProxies);
    // A counter that exists from the start lets Prometheus see its first increment.
    options.metrics?.loginsRefused?.add(["token_missing"], 0);
  }

  add({ kind, message, facts }: OwlError, request: IncomingMessage, traceId: string): void {
    const { logger, metrics } = this.#options;
    const { method, url = "" } = request;
    const [path = ""] = url.slice(0, MAX_PATH_CHARS).split("?");
    logger.warning("request refused", {
      kind,
      reason: message,
      http_method: method,
      path,
      trace_id: traceId,
      client_address: this.#addresses.of(request),
    });
    if (kind === "unauthorized")
      metrics?.loginsRefused?.add([typeof facts["reason"] === "string" ? facts["reason"] : "other"], 1);
  }
}
