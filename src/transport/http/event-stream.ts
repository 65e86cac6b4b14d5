import type { Principal } from "../../auth/principal.ts";
import { MAX_TIMER_MS } from "../../config/value-rules.ts";
import { type AnswerSink, onClose, type HttpExchange } from "./exchange-io.ts";
import { type JsonRpcMessage, type JsonRpcResponse, serializeMessage } from "../../mcp/json-rpc.ts";

/** A client that reads this much too slowly is cut off: its memory is ours. */
export const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  // Proxies hold streams back unless told otherwise.
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
  /** Whose token the stream ends with; nobody's, where something else ends it. */
  readonly reader: Principal | undefined;
}

/**
 * A stream must not go on telling things to somebody whose token has ended. For streams alone: an answer under way may
 * finish, and a timer for each call would cost more than all else that a known token does.
 */
export function endWithToken(response: AnswerSink, expiresAt: number | undefined): void {
  if (expiresAt === undefined) return;
  // Clock and timers both leave out parts of a millisecond: without one more, it would end a little too early at times.
  const afterMs = Math.min(Math.max(expiresAt * 1000 - Date.now() + 1, 0), MAX_TIMER_MS);
  const timer = setTimeout(() => response.end(), afterMs).unref();
  onClose(response, () => clearTimeout(timer));
}

/** Server-sent events on an open response, kept alive with comments. */
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

  /** Ends the stream, after these events: like any other answer, they may be as long as they are. */
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
  /** Whether the client takes a stream. */
  readonly canStream: boolean;
}

/** The answer to a client without session becomes a stream only when something must be said first, and it can be read. */
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

  /** Ends the stream with the answers; says no when there is none and the answers go out as JSON. */
  finish(answers: readonly JsonRpcResponse[]): boolean {
    if (this.#stream === undefined) return false;
    this.#stream.end(answers.map((answer) => ({ event: "message", data: serializeMessage(answer) })));
    return true;
  }
}
