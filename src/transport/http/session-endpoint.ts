import { OwlError } from "../../errors/owl-error.ts";
import {
  type JsonRpcRequest,
  type JsonRpcResponse,
  type Parsed,
  parseMessages,
  type Incoming,
} from "../../mcp/json-rpc.ts";
import { header, sendEmpty, sendError, sendJson, type SessionExchange } from "./exchange-io.ts";
import type { Sessions } from "./sessions.ts";
import { hasBatches, isSupported, unsupportedVersion } from "../../mcp/versions.ts";
import { errorAnswer } from "../../mcp/wire-error.ts";

export interface SessionEndpointOptions {
  readonly sessions: Sessions;
  readonly withStack: boolean;
}

/** A request to a session, as the client sent it. */
export interface SessionRequest {
  readonly method: "POST" | "GET" | "DELETE";
  readonly sessionId: string;
  readonly body: string;
}

/** Serves requests to sessions of this server. */
export class SessionEndpoint {
  readonly #options: SessionEndpointOptions;

  constructor(options: SessionEndpointOptions) {
    this.#options = options;
  }

  async serve({ method, sessionId, body }: SessionRequest, exchange: SessionExchange): Promise<void> {
    if (method === "POST") return this.post(sessionId, parseMessages(body), exchange);
    if (method === "GET") return this.get(sessionId, exchange);
    await this.delete(sessionId, exchange);
  }

  async post(sessionId: string, parsed: Parsed, exchange: SessionExchange): Promise<void> {
    const session = this.#options.sessions.get(sessionId, exchange.principal);
    assertVersion(exchange);
    const { version } = session.connection;
    const { traceId } = exchange;
    const requests: JsonRpcRequest[] = [];
    const refusals: JsonRpcResponse[] = [];
    for (const item of itemsOf(parsed, version)) {
      if (item.kind === "request") requests.push(item.message);
      else if (item.kind === "notification") session.notify(item.message);
      else if (item.kind === "response") session.respond(item.message);
      else refusals.push(refusalOf(item, { traceId, version, withStack: this.#options.withStack }));
    }
    if (!parsed.batch && refusals[0] !== undefined)
      return sendJson(exchange.response, 400, refusals[0], session.headers());
    if (requests.length === 0 && refusals.length === 0) return sendEmpty(exchange.response, 202, session.headers());
    await session.answer(requests, exchange, { isBatch: parsed.batch, refusals });
  }

  /** Opens the stream of a session, or resumes one of its streams. */
  get(sessionId: string, exchange: SessionExchange): void {
    const { request, response, traceId } = exchange;
    const session = this.#options.sessions.get(sessionId, exchange.principal);
    assertVersion(exchange);
    const lastEventId = header(request, "last-event-id");
    if (lastEventId !== undefined) {
      if (session.resume(lastEventId, exchange)) return;
      throw new OwlError("invalid_request", "there is no stream with this Last-Event-ID", {
        hint: "open a new stream without Last-Event-ID",
      });
    }
    if (session.listen(exchange)) return;
    const error = new OwlError("invalid_request", "this session has an open stream already", {
      hint: "use one GET stream for each session",
    });
    sendError(response, error, { traceId, withStack: false, status: 409 });
  }

  async delete(sessionId: string, exchange: SessionExchange): Promise<void> {
    const { sessions } = this.#options;
    await sessions.end(sessions.get(sessionId, exchange.principal));
    sendEmpty(exchange.response, 204);
  }
}

export type InvalidItem = Incoming & { readonly kind: "invalid" };

/** Returns the messages. Batches exist in one revision only. */
export function itemsOf(parsed: Parsed, version: string): readonly Incoming[] {
  if (!parsed.batch) return [parsed.item];
  if (!hasBatches(version))
    throw new OwlError("invalid_request", `revision ${version} has no batches`, {
      hint: "send one message at a time",
    });
  return parsed.items;
}

export function refusalOf(
  { id, error }: InvalidItem,
  options: { readonly traceId: string; readonly version: string; readonly withStack: boolean },
): JsonRpcResponse {
  return errorAnswer(id, error, options);
}

export function assertVersion({ request }: Pick<SessionExchange, "request">): void {
  const version = header(request, "mcp-protocol-version");
  if (version !== undefined && !isSupported(version)) throw unsupportedVersion(version);
}
