import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import { attachServer } from "../../protocol/attach-server.ts";
import { Connection } from "../../protocol/connection.ts";
import {
  type Incoming,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type Parsed,
  parseMessages,
} from "../../protocol/json-rpc.ts";
import type { Mcp } from "../../protocol/mcp.ts";
import { hasBatches, isModern, isSupported, PLAIN_VERSION, unsupportedVersion } from "../../protocol/versions.ts";
import { toWireError } from "../../protocol/wire-error.ts";
import {
  acceptsEventStream,
  lifeOf,
  header,
  type HttpExchange,
  sendEmpty,
  sendError,
  sendJson,
} from "./exchange-io.ts";
import { isModernMessage, ModernLeg } from "./modern-leg.ts";
import { quotaHeadersOf } from "./quota-headers.ts";
import { PlainStream } from "./plain-stream.ts";
import { readBody } from "./read-body.ts";
import { Sessions } from "./sessions.ts";

export interface EndpointOptions {
  readonly mcp: Mcp;
  readonly maxBodyBytes: number;
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
  readonly keepAliveMs: number;
  readonly fastPath?: boolean;
}

/** `POST`, `GET` and `DELETE /mcp`: finds out which era a request belongs to and hands it over. */
export class McpEndpoint {
  readonly sessions: Sessions;
  readonly #mcp: Mcp;
  readonly #options: EndpointOptions;
  readonly #modern: ModernLeg;
  /** Clients without a handshake share one line: they have no state that could be mixed up. */
  readonly #plain: Connection;

  constructor(options: EndpointOptions) {
    const { mcp, maxSessions, sessionIdleMs, keepAliveMs, fastPath = true } = options;
    this.#mcp = mcp;
    this.#options = options;
    this.sessions = new Sessions({ mcp, maxSessions, idleMs: sessionIdleMs, keepAliveMs, fastPath });
    this.#modern = new ModernLeg({ mcp, keepAliveMs, fastPath });
    this.#plain = new Connection({
      mcp,
      fastPath,
      attach: (transport) => attachServer(mcp, transport, { followsChanges: false }),
    });
  }

  async post(exchange: HttpExchange): Promise<void> {
    const parsed = await this.#read(exchange);
    if (parsed === undefined) return;
    const sessionId = header(exchange.request, "mcp-session-id");
    if (sessionId !== undefined) return this.#postToSession(sessionId, parsed, exchange);
    const item = parsed.batch ? undefined : parsed.item;
    if (item?.kind === "request" || item?.kind === "notification") {
      if (isModernMessage(item.message, exchange.request)) return this.#modern.serve(item.message, exchange);
    }
    if (item?.kind === "request" && item.message.method === "initialize")
      return this.#startSession(item.message, exchange);
    await this.#postPlain(parsed, exchange);
  }

  /** The stream of a session, or a lost one of its streams. Says no when the request asks for neither. */
  get(exchange: HttpExchange): boolean {
    const { request } = exchange;
    const sessionId = header(request, "mcp-session-id");
    if (!acceptsEventStream(request) || sessionId === undefined) return false;
    const session = this.sessions.get(sessionId, exchange.principal);
    this.#assertVersion(exchange);
    const lastEventId = header(request, "last-event-id");
    if (lastEventId !== undefined) {
      if (!session.resume(lastEventId, exchange)) {
        throw new OwlError("invalid_request", "there is no stream with this Last-Event-ID", {
          hint: "open a new stream without Last-Event-ID",
        });
      }
    } else if (!session.listen(exchange)) {
      const error = new OwlError("invalid_request", "this session has an open stream already", {
        hint: "use one GET stream for each session",
      });
      sendError(exchange.response, error, { traceId: exchange.traceId, withStack: false, status: 409 });
    }
    return true;
  }

  async delete(exchange: HttpExchange): Promise<void> {
    const sessionId = header(exchange.request, "mcp-session-id");
    if (sessionId === undefined)
      throw new OwlError("invalid_request", "DELETE ends a session and needs the Mcp-Session-Id header");
    await this.sessions.end(this.sessions.get(sessionId, exchange.principal));
    sendEmpty(exchange.response, 204);
  }

  async close(): Promise<void> {
    await Promise.all([this.sessions.close(), this.#modern.close(), this.#plain.close()]);
  }

  async #startSession(message: JsonRpcRequest, exchange: HttpExchange): Promise<void> {
    const session = this.sessions.create(exchange.principal);
    try {
      await session.answer([message], exchange, { isBatch: false });
    } finally {
      // A handshake that failed leaves nothing behind.
      if (!session.connection.isInitialized) await this.sessions.end(session);
    }
  }

  async #postToSession(sessionId: string, parsed: Parsed, exchange: HttpExchange): Promise<void> {
    const session = this.sessions.get(sessionId, exchange.principal);
    this.#assertVersion(exchange);
    const { version } = session.connection;
    const items = this.#itemsOf(parsed, version);
    const requests: JsonRpcRequest[] = [];
    const refusals: JsonRpcResponse[] = [];
    for (const item of items) {
      if (item.kind === "request") requests.push(item.message);
      else if (item.kind === "notification") session.notify(item.message);
      else if (item.kind === "response") session.respond(item.message);
      else refusals.push(this.#refusalOf(item, exchange, version));
    }
    if (!parsed.batch && refusals[0] !== undefined)
      return sendJson(exchange.response, 400, refusals[0], session.headers());
    if (requests.length === 0 && refusals.length === 0) return sendEmpty(exchange.response, 202, session.headers());
    await session.answer(requests, exchange, { isBatch: parsed.batch, refusals });
  }

  /** The messages of the body; nothing when it was refused. */
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
    const stream = new PlainStream(exchange, this.#options.keepAliveMs);
    const gone = lifeOf(response);
    const answers = await Promise.all(
      this.#itemsOf(parsed, version).map(async (item) => {
        if (item.kind === "invalid") return this.#refusalOf(item, exchange, version);
        if (item.kind !== "request") return undefined;
        if (NEEDS_SESSION.has(item.message.method))
          return this.#refusalOf(needsSession(item.message), exchange, version);
        return this.#plain.request(item.message, { caller, traceId, gone, stream: (message) => stream.send(message) });
      }),
    );
    const sent = answers.filter((answer) => answer !== undefined);
    if (stream.finish(sent)) return;
    const [only] = sent;
    if (only === undefined) sendEmpty(response, 202);
    else sendJson(response, 200, parsed.batch ? sent : only, quotaHeadersOf(sent));
  }

  /** Batches exist in one revision only. */
  #itemsOf(parsed: Parsed, version: string): readonly Incoming[] {
    if (!parsed.batch) return [parsed.item];
    if (!hasBatches(version))
      throw new OwlError("invalid_request", `revision ${version} has no batches`, {
        hint: "send one message at a time",
      });
    return parsed.items;
  }

  #refusalOf(
    { id, error }: Incoming & { readonly kind: "invalid" },
    { traceId }: HttpExchange,
    version: string,
  ): JsonRpcResponse {
    return { jsonrpc: "2.0", id, error: toWireError(error, { version, traceId, withStack: this.#mcp.withStack }) };
  }

  #refuse({ response, traceId }: HttpExchange, { id, error }: Incoming & { readonly kind: "invalid" }): void {
    sendError(response, error, { traceId, withStack: this.#mcp.withStack, id });
  }

  #assertVersion({ request }: HttpExchange): void {
    const version = header(request, "mcp-protocol-version");
    if (version !== undefined && !isSupported(version)) throw unsupportedVersion(version);
  }
}

/** What these change would belong to nobody, or to everybody on the shared line. */
const NEEDS_SESSION: ReadonlySet<string> = new Set([
  "initialize",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
]);

function needsSession({ id, method }: JsonRpcRequest): Incoming & { readonly kind: "invalid" } {
  const error = new OwlError("invalid_request", `"${method}" needs a session of its own`, {
    hint: "send initialize in a request of its own, and its Mcp-Session-Id with all others",
  });
  return { kind: "invalid", id, error };
}

/** A client with neither session nor a revision that says otherwise gets every answer with status 200. */
function isPlain(request: HttpExchange["request"]): boolean {
  const version = header(request, "mcp-protocol-version");
  return header(request, "mcp-session-id") === undefined && (version === undefined || !isModern(version));
}
