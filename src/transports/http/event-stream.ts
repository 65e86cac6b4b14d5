import type { AnswerSink } from "./exchange-io.ts";

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

/** Server-sent events on an open response, kept alive with comments. */
export class EventStream {
  readonly #response: AnswerSink;
  readonly #keepAlive: NodeJS.Timeout;

  constructor(
    response: AnswerSink,
    { headers, keepAliveMs }: { readonly headers: Record<string, string>; readonly keepAliveMs: number },
  ) {
    this.#response = response;
    response.writeHead(200, { ...EVENT_STREAM_HEADERS, ...headers });
    response.flushHeaders();
    this.#keepAlive = setInterval(() => this.#write(": keep-alive\n\n"), keepAliveMs);
    this.#keepAlive.unref();
    response.once("close", () => clearInterval(this.#keepAlive));
  }

  send({ event, id, data, retryMs }: ServerEvent): void {
    const head = `${event === undefined ? "" : `event: ${event}\n`}${id === undefined ? "" : `id: ${id}\n`}${retryMs === undefined ? "" : `retry: ${retryMs}\n`}`;
    this.#write(`${head}data: ${data}\n\n`);
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#response.end();
  }

  #write(text: string): void {
    if (this.#response.writableEnded || this.#response.destroyed) return;
    this.#response.write(text);
    if (this.#response.writableLength > MAX_UNREAD_BYTES) this.#response.destroy();
  }
}
