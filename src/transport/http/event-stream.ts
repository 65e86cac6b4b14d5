import type { Principal } from "../../auth/principal.ts";
import { MAX_TIMER_MS } from "../../config/value-rules.ts";
import { type AnswerSink, onClose, type HttpExchange } from "./exchange-io.ts";
import { type JsonRpcMessage, type JsonRpcResponse, serializeMessage } from "../../mcp/json-rpc.ts";

/** A client with more unread bytes than this is disconnected, because the server buffers them in memory. */
export const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  // Proxies such as nginx buffer event streams without this header.
  "x-accel-buffering": "no",
} as const;

export interface ServerEvent {
  readonly event?: string;
  readonly id?: string;
  readonly data: string;
  readonly retryMs?: number;
}

export interface EventStreamOptions {
  readonly headers: Record<string, string>;
  readonly keepAliveMs: number;
  /** The stream ends when the token of this principal expires. Undefined when something else ends the stream. */
  readonly reader: Principal | undefined;
}

/**
 * Ends a stream when its token expires. Only for streams: other responses may finish, and a timer for each call would
 * cost more than the check of a known token.
 */
export function endWithToken(response: AnswerSink, expiresAt: number | undefined): void {
  if (expiresAt === undefined) return;
  // Date.now() and timers round down to whole milliseconds. Without the extra one the stream could end slightly too
  // early.
  const afterMs = Math.min(Math.max(expiresAt * 1000 - Date.now() + 1, 0), MAX_TIMER_MS);
  const timer = setTimeout(() => response.end(), afterMs).unref();
  onClose(response, () => clearTimeout(timer));
}

/** Server-sent events on an open response, with keep-alive comments. */
export class EventStream {
  readonly #response: AnswerSink;
  readonly #keepAlive: NodeJS.Timeout;

  constructor(response: AnswerSink, { headers, keepAliveMs, reader }: EventStreamOptions) {
    this.#response = response;
    response.writeHead(200, { ...EVENT_STREAM_HEADERS, ...headers });
    response.flushHeaders();
    endWithToken(response, reader?.expiresAt);
    this.#keepAlive = setInterval(() => this.#write(": keep-alive\n\n"), keepAliveMs);
    this.#keepAlive.unref();
    onClose(response, () => clearInterval(this.#keepAlive));
  }

  send(event: ServerEvent): void {
    this.#write(toText(event));
  }

  /** Sends the last events and ends the stream. `MAX_UNREAD_BYTES` does not apply to them. */
  end(last: readonly ServerEvent[] = []): void {
    clearInterval(this.#keepAlive);
    if (this.#response.writableEnded || this.#response.destroyed) return;
    this.#response.end(last.map(toText).join(""));
  }

  #write(text: string): void {
    if (this.#response.writableEnded || this.#response.destroyed) return;
    this.#response.write(text);
    if (this.#response.writableLength > MAX_UNREAD_BYTES) this.#response.destroy();
  }
}

function toText({ event, id, data, retryMs }: ServerEvent): string {
  const head = `${event === undefined ? "" : `event: ${event}\n`}${id === undefined ? "" : `id: ${id}\n`}${retryMs === undefined ? "" : `retry: ${retryMs}\n`}`;
  return `${head}data: ${data}\n\n`;
}

export interface PlainStreamOptions {
  readonly keepAliveMs: number;
  /** Whether the client accepts an event stream. */
  readonly canStream: boolean;
}

/**
 * The response to a client without a session. It becomes a stream when a message must be sent before the answer, and
 * the client accepts streams.
 */
export class PlainStream {
  readonly #exchange: HttpExchange;
  readonly #options: PlainStreamOptions;
  #stream: EventStream | undefined;

  constructor(exchange: HttpExchange, options: PlainStreamOptions) {
    this.#exchange = exchange;
    this.#options = options;
  }

  send(message: JsonRpcMessage): void {
    const { response, principal } = this.#exchange;
    const { canStream, keepAliveMs } = this.#options;
    if (!canStream || response.destroyed) return;
    this.#stream ??= new EventStream(response, { headers: {}, keepAliveMs, reader: principal });
    this.#stream.send({ event: "message", data: serializeMessage(message) });
  }

  /** Ends the stream with the answers. Returns false when there is no stream: the answers are then sent as JSON. */
  finish(answers: readonly JsonRpcResponse[]): boolean {
    if (this.#stream === undefined) return false;
    this.#stream.end(answers.map((answer) => ({ event: "message", data: serializeMessage(answer) })));
    return true;
  }
}
