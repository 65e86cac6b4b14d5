import type { SessionOwners } from "../../cluster/session-owners.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import { Connection } from "../../mcp/connection.ts";
import { type JsonRpcRequest, type Parsed, parseMessages } from "../../mcp/json-rpc.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { isModern, isSupported, PLAIN_VERSION, unsupportedVersion } from "../../mcp/versions.ts";
import {
  acceptsEventStream,
  lifeOf,
  header,
  type HttpExchange,
  sendEmpty,
  sendError,
  sendJson,
  type SessionExchange,
} from "./exchange-io.ts";
import { SessionEndpoint, type SessionRequest, type InvalidItem, itemsOf, refusalOf } from "./session-endpoint.ts";
import { isModernMessage, ModernEndpoint } from "./modern-endpoint.ts";
import { quotaHeadersOf } from "./quota-headers.ts";
import { PlainStream } from "./event-stream.ts";
import { readBody } from "./read-body.ts";
import type { RemoteSessions } from "./remote-sessions.ts";
import { SessionOwnership } from "./session-ownership.ts";
import { Sessions } from "./sessions.ts";

export interface EndpointOptions {
  readonly mcp: Mcp;
  readonly maxBodyBytes: number;
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
  readonly keepAliveMs: number;
  /** Present when several servers share the load. */
  readonly cluster?: { readonly owners: SessionOwners; readonly remote: RemoteSessions } | undefined;
}

/** `POST`, `GET` and `DELETE /mcp`: determines the era of a request and passes it on. */
export class McpEndpoint {
  readonly sessions: Sessions;
  readonly #endpoint: SessionEndpoint;
  readonly #mcp: Mcp;
  readonly #options: EndpointOptions;
  readonly #modern: ModernEndpoint;
  readonly #ownership: SessionOwnership | undefined;
  /** Clients without a handshake share one connection, because they have no state. */
  readonly #plain: Connection;

  constructor(options: EndpointOptions) {
    const { mcp, maxSessions, sessionIdleMs, keepAliveMs, cluster } = options;
    this.#mcp = mcp;
    this.#options = options;
    this.sessions = new Sessions({
      mcp,
      maxSessions,
      idleMs: sessionIdleMs,
      keepAliveMs,
      ...(cluster && { newId: () => cluster.owners.newId(), store: cluster.owners.store }),
    });
    const { sessions } = this;
    this.#ownership = cluster && new SessionOwnership({ sessions, owners: cluster.owners, logger: mcp.logger });
    this.#endpoint = new SessionEndpoint({ sessions: this.sessions, withStack: mcp.withStack });
    this.#modern = new ModernEndpoint({ mcp, keepAliveMs });
    this.#plain = new Connection({ mcp });
  }

  async post(exchange: HttpExchange): Promise<void> {
    const sessionId = header(exchange.request, "mcp-session-id");
    if (sessionId !== undefined) return this.#serveSession("POST", sessionId, exchange);
    const parsed = await this.#read(exchange);
    if (parsed === undefined) return;
    const item = parsed.batch ? undefined : parsed.item;
    if (item?.kind === "request" || item?.kind === "notification") {
      if (isModernMessage(item.message, exchange.request)) return this.#modern.serve(item.message, exchange);
    }
    if (item?.kind === "request" && item.message.method === "initialize")
      return this.#startSession(item.message, exchange);
    await this.#postPlain(parsed, exchange);
  }

  /** Whether a GET request opens the stream of a session. */
  isForStream({ request }: HttpExchange): boolean {
    return acceptsEventStream(request) && header(request, "mcp-session-id") !== undefined;
  }

  /** Opens the stream of a session, or resumes one of its streams. */
  async get(exchange: HttpExchange): Promise<void> {
    await this.#serveSession("GET", header(exchange.request, "mcp-session-id") ?? "", exchange);
  }

  async delete(exchange: HttpExchange): Promise<void> {
    const sessionId = header(exchange.request, "mcp-session-id");
    if (sessionId === undefined)
      throw new OwlError("invalid_request", "DELETE ends a session and needs the Mcp-Session-Id header");
    await this.#serveSession("DELETE", sessionId, exchange);
  }

  /** Serves the request here, or on the server that owns the session. */
  async #serveSession(method: SessionRequest["method"], sessionId: string, exchange: HttpExchange): Promise<void> {
    const { maxBodyBytes, cluster } = this.#options;
    const ownership = this.#ownership;
    const body = method === "POST" ? await readBody(exchange.request, maxBodyBytes) : "";
    const request = { method, sessionId, body };
    if (cluster !== undefined && ownership !== undefined && !ownership.isHere(sessionId)) {
      if (await cluster.remote.relay(request, exchange, { endpoint: "mcp", ownership })) return;
    }
    await this.#endpoint.serve(request, exchange);
  }

  /** Serves a request that another server relays to the owner of the session. */
  async serveRelayed(request: SessionRequest, exchange: SessionExchange): Promise<void> {
    await this.#ownership?.settled(request.sessionId);
    await this.#endpoint.serve(request, exchange);
  }

  async close(): Promise<void> {
    this.#options.cluster?.remote.close();
    await Promise.all([this.sessions.close(), this.#modern.close(), this.#plain.close()]);
  }

  async #startSession(message: JsonRpcRequest, exchange: HttpExchange): Promise<void> {
    const session = this.sessions.create(exchange.principal);
    let hasBegun = false;
    try {
      await session.answer([message], exchange, { isBatch: false });
      hasBegun = session.connection.isInitialized;
    } finally {
      // A failed handshake leaves no session.
      if (!hasBegun) await this.sessions.end(session);
    }
  }

  /** The messages of the body. Undefined when the body was refused. */
  async #read(exchange: HttpExchange): Promise<Parsed | undefined> {
    const { request, response, traceId } = exchange;
    try {
      return parseMessages(await readBody(request, this.#options.maxBodyBytes));
    } catch (thrown) {
      const error = toOwlError(thrown);
      const isJsonRpc = error.kind === "parse_error" || error.kind === "invalid_request";
      if (!isJsonRpc || !isPlain(request)) throw error;
      sendError(response, error, { traceId, withStack: this.#mcp.withStack, status: 200 });
      return undefined;
    }
  }

  async #postPlain(parsed: Parsed, exchange: HttpExchange): Promise<void> {
    const { request, response, principal, label, traceId } = exchange;
    const version = header(request, "mcp-protocol-version") ?? PLAIN_VERSION;
    if (!isSupported(version)) throw unsupportedVersion(version);
    if (isModern(version) && !parsed.batch && parsed.item.kind === "invalid")
      return this.#refuse(exchange, parsed.item);
    const caller = { principal, label, transport: "http", protocolVersion: version, sessionId: undefined } as const;
    const wire = { traceId, version, withStack: this.#mcp.withStack };
    const canStream = acceptsEventStream(request);
    const stream = new PlainStream(exchange, { keepAliveMs: this.#options.keepAliveMs, canStream });
    const gone = lifeOf(response);
    const answers = await Promise.all(
      itemsOf(parsed, version).map(async (item) => {
        if (item.kind === "invalid") return refusalOf(item, wire);
        if (item.kind !== "request") return undefined;
        if (NEEDS_SESSION.has(item.message.method)) return refusalOf(needsSession(item.message), wire);
        return this.#plain.request(item.message, {
          caller,
          traceId,
          gone,
          canStream,
          stream: (message) => stream.send(message),
        });
      }),
    );
    const sent = answers.filter((answer) => answer !== undefined);
    if (stream.finish(sent)) return;
    const [only] = sent;
    if (only === undefined) sendEmpty(response, 202);
    else sendJson(response, 200, parsed.batch ? sent : only, quotaHeadersOf(sent));
  }

  #refuse({ response, traceId }: HttpExchange, { id, error }: InvalidItem): void {
    sendError(response, error, { traceId, withStack: this.#mcp.withStack, id });
  }
}

/** Methods that change the state of a connection, which clients without a session share. */
const NEEDS_SESSION: ReadonlySet<string> = new Set([
  "initialize",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
]);

function needsSession({ id, method }: JsonRpcRequest): InvalidItem {
  const error = new OwlError("invalid_request", `"${method}" needs a session of its own`, {
    hint: "send initialize in a request of its own, and its Mcp-Session-Id with all others",
  });
  return { kind: "invalid", id, error };
}

/** Whether the client has neither a session nor a modern revision. It then gets status 200 with every answer. */
function isPlain(request: HttpExchange["request"]): boolean {
  const version = header(request, "mcp-protocol-version");
  return header(request, "mcp-session-id") === undefined && (version === undefined || !isModern(version));
}
