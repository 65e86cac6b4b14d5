import type { IncomingMessage, ServerResponse } from "node:http";
import type { Authenticator } from "../../auth/authenticator.ts";
import { challenge, requireScope } from "../../auth/protected-resource.ts";
import { ADMIN_SCOPE, ANONYMOUS, type Principal } from "../../auth/principal.ts";
import type { OperatorActs } from "../../call/operator-acts.ts";
import type { Config } from "../../config/schema.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { traceIdFrom } from "../../mcp/request-observer.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { OpenRequests } from "../open-requests.ts";
import { ClientAddresses } from "./client-address.ts";
import { ClientConnections, noConnectionLeft } from "./connection-limits.ts";
import { header, type HttpExchange, sendEmpty, sendError, tellTraceId } from "./exchange-io.ts";
import { type HostGuard, addCorsHeaders, answerPreflight } from "./guards.ts";
import type { MetricsSource } from "./metrics-endpoint.ts";
import type { PeerUsers } from "./peer-users.ts";
import { refusalHeaders } from "./quota-headers.ts";
import { onlyHeader, originOf, readTarget, type RequestTarget } from "./request-target.ts";
import { methodsOf, type Route, type RouteRequest, RouteTable } from "./route-table.ts";

export interface RouterOptions {
  readonly mcp: Mcp;
  readonly config: Config;
  readonly guard: HostGuard;
  readonly authenticator: Authenticator;
  /** Present when only the server's own user may connect. */
  readonly peers?: PeerUsers | undefined;
  readonly routes: readonly Route[];
  readonly requests: OpenRequests;
  readonly acts?: OperatorActs | undefined;
  /** Counts refused tokens. */
  readonly metrics?: MetricsSource | undefined;
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
  readonly #table: RouteTable;
  readonly #refusals: RefusedRequests;
  readonly #clients: ClientConnections;

  constructor(options: RouterOptions) {
    this.#options = options;
    const { mcp, metrics, config } = options;
    this.#table = new RouteTable(options.routes);
    this.#refusals = new RefusedRequests({ logger: mcp.logger, metrics, trustedProxies: config.http.trustedProxies });
    this.#clients = new ClientConnections(config.http.maxConnectionsPerClient);
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
    const { requests } = this.#options;
    const release = isCall ? requests.open() : () => undefined;
    if (requests.isDraining) response.shouldKeepAlive = false;
    try {
      await this.#serve({ request, response, traceId, release, isReserved });
    } catch (thrown) {
      this.#fail(thrown, request, response, traceId);
    } finally {
      release();
    }
  }

  async #serve(incoming: Incoming): Promise<void> {
    const { guard } = this.#options;
    const { request, response, traceId, release } = incoming;
    const target = readTarget(request);
    await this.#checkPeer(request, target);
    const match = this.#table.find(target.path);
    const guarded = match?.routes.find(({ role }) => role === "server" || role === "page");
    if (guarded !== undefined) return this.#serveGuarded(guarded, incoming, { ...target, parts: match?.parts ?? [] });
    addCorsHeaders(request, response, guard);
    guard.check(target.authority, request.headers.origin);
    if (match === undefined) {
      throw new OwlError("route_not_found", `there is nothing at ${JSON.stringify(target.path.slice(0, 128))}`);
    }
    if (answerPreflight(request, response, () => methodsOf(match))) return;
    const route = match.routes.find(({ methods }) => methods.some((method) => method === request.method));
    if (route === undefined) return this.#refuseMethod(request, response, { allowed: methodsOf(match), traceId });
    if (route.isAlwaysServed !== true) this.#assertServing();
    const known = this.#identify(route, request);
    const principal = known instanceof Promise ? await known : known;
    const exchange = { request, response, traceId, release, principal, label: labelOf(request) };
    await this.#answer(exchange, incoming, { route, target: { ...target, parts: match.parts } });
  }

  #identify({ role }: Route, request: IncomingMessage): Principal | Promise<Principal> {
    if (role === "anyone") return ANONYMOUS;
    return this.#options.authenticator.authenticate(onlyHeader(request, "authorization"));
  }

  async #answer(
    exchange: HttpExchange,
    incoming: Incoming,
    { route, target }: { readonly route: Route; readonly target: RouteRequest },
  ): Promise<void> {
    try {
      this.#admit(route, exchange, incoming);
      await route.serve(exchange, target);
    } catch (thrown) {
      this.#noteRefused(toOwlError(thrown), exchange, target.path);
      throw thrown;
    }
  }

  /** Routes with their own authentication: servers use the cluster key, the page a session. Tokens are not accepted here. */
  async #serveGuarded(route: Route, incoming: Incoming, target: RouteRequest): Promise<void> {
    this.#assertServing();
    if (route.role === "server" && incoming.isReserved) throw noConnectionLeft();
    await route.serve({ ...incoming, principal: ANONYMOUS, label: undefined }, target);
  }

  /** Health paths are public: they show nothing about calls, and process supervisors run as other users. */
  #checkPeer({ socket }: IncomingMessage, { path }: RequestTarget): void | Promise<void> {
    return HEALTH_PATH.test(path) ? undefined : this.#options.peers?.check(socket);
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
    if (this.#options.requests.isDraining) throw new OwlError("shutting_down", "the server is stopping");
  }

  /** Runs before the body is read, so that a flood of requests costs little. */
  #admit(
    route: Route,
    asker: { readonly principal: Principal; readonly label: string | undefined },
    incoming: Incoming,
  ): void {
    this.#options.mcp.tracing?.identified();
    if (route.role === "anyone") return;
    this.#clients.open(asker.principal, incoming);
    if (route.role === "operator") this.#assertOperator(asker.principal);
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
        resourceMetadataUrl: `${originOf(request, this.#options.config)}${RESOURCE_METADATA_PATH}/mcp`,
      });
    }
    if (error.kind === "shutting_down" || error.kind === "overloaded") headers["retry-after"] = "1";
    if (error.facts["reason"] === "connections") headers["connection"] = "close";
    // The unread rest of a refused body would be parsed as the next request.
    if (!request.complete) headers["connection"] = "close";
    sendError(response, error, { traceId, withStack: mcp.withStack, headers, ...(isLimited && { status: 429 }) });
  }
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
