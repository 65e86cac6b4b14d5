import type { SessionOwners } from "../../cluster/session-owners.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Caller } from "../../call/call.ts";
import { Connection } from "../../mcp/connection.ts";
import {
  type Incoming,
  type JsonRpcMessage,
  type Parsed,
  parseMessages,
  serializeMessage,
} from "../../mcp/json-rpc.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { hasBatches } from "../../mcp/versions.ts";
import { errorAnswer } from "../../mcp/wire-error.ts";
import { EventStream } from "./event-stream.ts";
import { type HttpExchange, onClose, sendEmpty, type SessionExchange } from "./exchange-io.ts";
import { readBody } from "./read-body.ts";
import type { RemoteSessions } from "./remote-sessions.ts";
import type { SessionRequest } from "./session-endpoint.ts";
import { secretId } from "./sessions.ts";

export interface LegacySseOptions {
  readonly mcp: Mcp;
  readonly maxBodyBytes: number;
  readonly keepAliveMs: number;
  readonly maxStreams: number;
  /** Present when several servers share the load. */
  readonly cluster?: { readonly owners: SessionOwners; readonly remote: RemoteSessions } | undefined;
}

interface Line {
  readonly ownerId: string;
  readonly connection: Connection;
  readonly send: (message: JsonRpcMessage | readonly JsonRpcMessage[]) => void;
}

/**
 * The transport of revision 2024-11-05: one stream for all messages from the server, and a POST for each message to it.
 */
export class LegacySse {
  readonly #options: LegacySseOptions;
  readonly #lines = new Map<string, Line>();

  constructor(options: LegacySseOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#lines.size;
  }

  /** `GET /mcp/sse`. The stream is the connection: when it closes, the connection ends. */
  open({ response, principal }: HttpExchange): void {
    const { mcp, keepAliveMs, maxStreams, cluster } = this.#options;
    if (this.#lines.size >= maxStreams)
      throw new OwlError("overloaded", `all ${maxStreams} event streams are in use`, { facts: { limit: maxStreams } });
    const id = cluster?.owners.newId() ?? secretId();
    const stream = new EventStream(response, { headers: {}, keepAliveMs, reader: principal });
    const send = (message: JsonRpcMessage | readonly JsonRpcMessage[]): void =>
      stream.send({ event: "message", data: serializeMessage(message) });
    const connection = new Connection({ mcp, unrelated: send });
    this.#lines.set(id, { ownerId: principal.id, connection, send });
    onClose(response, () => {
      this.#lines.delete(id);
      void connection.close();
    });
    stream.send({ event: "endpoint", data: `/mcp/messages?sessionId=${id}` });
  }

  /** `POST /mcp/messages`: accepted by the server that has the stream, and answered on the stream. */
  async post(exchange: HttpExchange, sessionId: string | null): Promise<void> {
    const { cluster, maxBodyBytes } = this.#options;
    if (sessionId === null) throw missing();
    if (cluster === undefined) this.#lineOf(sessionId, exchange);
    const request = { method: "POST", sessionId, body: await readBody(exchange.request, maxBodyBytes) } as const;
    if (cluster !== undefined && !this.#lines.has(sessionId)) {
      if (await cluster.remote.relay(request, exchange, { endpoint: "sse" })) return;
    }
    await this.accept(request, exchange);
  }

  async accept({ sessionId, body }: SessionRequest, exchange: SessionExchange): Promise<void> {
    const line = this.#lineOf(sessionId, exchange);
    const parsed = this.#parse(body, line.connection.version);
    sendEmpty(exchange.response, 202);
    const caller: Caller = {
      principal: exchange.principal,
      label: exchange.label,
      transport: "sse",
      protocolVersion: line.connection.version,
      sessionId,
    };
    const items = parsed.batch ? parsed.items : [parsed.item];
    const answers = (
      await Promise.all(items.map((item) => this.#serve(item, { line, caller, traceId: exchange.traceId })))
    ).filter((answer) => answer !== undefined);
    const [only] = answers;
    if (only !== undefined) line.send(parsed.batch ? answers : only);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#lines.values()].map(({ connection }) => connection.close()));
    this.#lines.clear();
  }

  #lineOf(sessionId: string, { principal }: SessionExchange): Line {
    const line = this.#lines.get(sessionId);
    if (line === undefined || line.ownerId !== principal.id) throw missing();
    return line;
  }

  #parse(text: string, version: string): Parsed {
    const parsed = parseMessages(text);
    if (parsed.batch && !hasBatches(version))
      throw new OwlError("invalid_request", `revision ${version} has no batches`);
    return parsed;
  }

  async #serve(
    item: Incoming,
    { line, caller, traceId }: { readonly line: Line; readonly caller: Caller; readonly traceId: string },
  ): Promise<JsonRpcMessage | undefined> {
    if (item.kind === "request")
      return line.connection.request(item.message, { caller, traceId, gone: undefined, stream: line.send });
    if (item.kind === "notification") line.connection.notify(item.message);
    else if (item.kind === "response") line.connection.respond(item.message);
    else
      return errorAnswer(item.id, item.error, {
        version: caller.protocolVersion,
        traceId,
        withStack: this.#options.mcp.withStack,
      });
    return undefined;
  }
}

function missing(): OwlError {
  return new OwlError("session_not_found", "this event stream does not exist or has ended", {
    hint: "open a new one with GET /mcp/sse",
  });
}
