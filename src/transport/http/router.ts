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
  /** Where only the server's own user may connect. */
  readonly peers?: PeerUsers | undefined;
  readonly routes: readonly Route[];
  readonly requests: OpenRequests;
  readonly acts?: OperatorActs | undefined;
  /** Counts refused tokens. */
  readonly metrics?: MetricsSource | undefined;
}

interface Incoming extends Pick<HttpExchange, "request" | "response" | "traceId" | "release"> {
  /** Whether all connections are taken but those for health checks and operators. */
  readonly isReserved: boolean;
}

const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource";
const MAX_LABEL_CHARS = 128;
const HEALTH_PATH = /^\/health(?:\/|$)/;
/** Paths of files hold the id of a sandbox, and each transfer has a row. */
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
    // Shutdown waits for calls. A stream is open as long as its client likes: shutdown ends it, it does not wait.
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

  /** Servers are known by the key of the cluster, operators by a session of the dashboard: no token counts. */
  async #serveGuarded(route: Route, incoming: Incoming, target: RouteRequest): Promise<void> {
    this.#assertServing();
    if (route.role === "server" && incoming.isReserved) throw noConnectionLeft();
    await route.serve({ ...incoming, principal: ANONYMOUS, label: undefined }, target);
  }

  /** Health is for everybody: it tells nothing of calls, and supervisors run as other users. */
  #checkPeer({ socket }: IncomingMessage, { path }: RequestTarget): void | Promise<void> {
    return HEALTH_PATH.test(path) ? undefined : this.#options.peers?.check(socket);
  }

  /** Attempts on what is for operators, or on a session that is not the caller's. Calls have rows of their own. */
  #noteRefused(refusal: OwlError, { principal, request, traceId }: HttpExchange, path: string): void {
    const { kind } = refusal;
    if (!NOTED_PATH.test(path) || (kind !== "forbidden" && kind !== "session_not_found")) return;
    const args = { method: request.method ?? "", path: path.slice(0, MAX_NOTED_CHARS) };
    this.#options.acts?.note({ by: principal.id, transport: "http", name: "request.refused", args, traceId, refusal });
  }

  #assertServing(): void {
    if (this.#options.requests.isDraining) throw new OwlError("shutting_down", "the server is stopping");
  }

  /** Before anything of the request is read: a flood costs next to nothing. */
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

  /** With auth off everybody is the same caller: nobody can be told to be an operator, so nobody is. */
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
    // What is left of a body that was refused unread would be taken for the next request.
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

/** Tells of requests that were refused before any call, with the address that they came from. */
export class RefusedRequests {
  readonly #options: RefusedRequestsOptions;
  readonly #addresses: ClientAddresses;

  constructor(options: RefusedRequestsOptions) {
    this.#options = options;
    this.#addresses = new ClientAddresses(options.trustedProxies);
    // A counter that is there from the start lets Prometheus see its first step.
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
