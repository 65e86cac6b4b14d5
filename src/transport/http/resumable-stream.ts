import { randomBytes } from "node:crypto";
import { isObject, type JsonRpcMessage, type RequestId, serializeMessage } from "../../mcp/json-rpc.ts";
import type { StoredStream, StreamEvent } from "../../cluster/session-state.ts";
import type { EventStream } from "./event-stream.ts";

/**
 * A lost stream is kept for this time, so that its client can resume it. A finished one too, so that its client can
 * read the rest.
 */
export const RESUME_WINDOW_MS = 10_000;
const MAX_KEPT_EVENTS = 1000;
const MAX_KEPT_BYTES = 4 * 1024 * 1024;
/** The reconnection delay for the client when the server ends a stream early. */
const RETRY_MS = 500;

/** Stores the events of a stream for other servers. */
export interface StreamLog {
  event(event: StreamEvent, facts: { readonly keep: number; readonly isFirst: boolean }): void;
  ended(): void;
}

export interface ResumableStreamOptions {
  /** Called when the client lost the stream and did not resume it in time. A client may resume several times. */
  readonly onAbandoned?: () => void;
  /** The requests whose answers this stream carries. */
  readonly requestIds?: readonly RequestId[];
  readonly logFor?: ((id: string) => StreamLog) | undefined;
  /** The state of this stream from another server. */
  readonly stored?: StoredStream | undefined;
}

/**
 * A stream of messages that outlives its connection: a client that lost the connection resumes after its last event.
 */
export class ResumableStream {
  readonly id: string;
  readonly requestIds: readonly RequestId[];
  readonly #events: StreamEvent[] = [];
  #keptBytes = 0;
  #sequence = 0;
  readonly #onAbandoned: () => void;
  #sink: EventStream | undefined;
  #waiting: NodeJS.Timeout | undefined;
  #ended = false;
  readonly #log: StreamLog | undefined;
  readonly #wasStored: boolean;

  constructor({ onAbandoned = () => undefined, logFor, stored, requestIds = [] }: ResumableStreamOptions = {}) {
    this.requestIds = requestIds;
    this.#onAbandoned = onAbandoned;
    this.id = stored?.id ?? randomBytes(12).toString("base64url");
    this.#log = logFor?.(this.id);
    this.#wasStored = stored !== undefined;
    if (stored === undefined) return;
    this.#events.push(...stored.events);
    this.#keptBytes = stored.events.reduce((sum, { data }) => sum + data.length, 0);
    this.#sequence = stored.events.at(-1)?.sequence ?? 0;
    this.#ended = stored.isEnded;
  }

  /** The stored events, for the client or for another server. */
  get events(): readonly StreamEvent[] {
    return this.#events;
  }

  get isConnected(): boolean {
    return this.#sink !== undefined;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** The requests without an answer among the events. */
  unansweredIds(): readonly RequestId[] {
    const answered = new Set(this.#events.map(({ data }) => answeredId(data)));
    return this.requestIds.filter((id) => !answered.has(id));
  }

  connect(sink: EventStream): void {
    clearTimeout(this.#waiting);
    this.#sink = sink;
  }

  /** The connection is closed. Events are stored for the next one. */
  disconnect(sink: EventStream): void {
    if (this.#sink !== sink) return;
    this.#sink = undefined;
    this.#awaitClient();
  }

  /** Ends the connection and keeps the stream, so that the client reconnects for the rest. */
  drop(): void {
    if (this.#sink === undefined) return;
    this.#sink.end();
    this.#sink = undefined;
    this.#awaitClient();
  }

  /** Sends an event without data, with the id at which the client can resume before any message. */
  prime(): void {
    const id = this.#keep("");
    this.#sink?.send({ id, retryMs: RETRY_MS, data: "" });
  }

  send(message: JsonRpcMessage): void {
    const data = serializeMessage(message);
    const id = this.#keep(data);
    this.#sink?.send({ event: "message", id, data });
  }

  /** Ends the stream on this server only. Another server may continue it. */
  hangUp(): void {
    this.#ended = true;
    clearTimeout(this.#waiting);
    this.drop();
  }

  end(): void {
    if (!this.#ended) this.#log?.ended();
    this.hangUp();
  }

  /** Sends the events after `lastSequence` to a new connection, then new events. */
  resume(sink: EventStream, lastSequence: number): void {
    // The client may have received events that the lost server had not stored.
    if (this.#wasStored) this.#sequence = Math.max(this.#sequence, lastSequence);
    for (const { sequence, data } of this.#events) {
      if (sequence > lastSequence && data !== "") sink.send({ event: "message", id: `${this.id}.${sequence}`, data });
    }
    if (this.#ended) sink.end();
    else this.connect(sink);
  }

  #awaitClient(): void {
    if (this.#ended) return;
    clearTimeout(this.#waiting);
    this.#waiting = setTimeout(this.#onAbandoned, RESUME_WINDOW_MS);
    this.#waiting.unref();
  }

  #keep(data: string): string {
    this.#sequence += 1;
    const event = { sequence: this.#sequence, data };
    this.#events.push(event);
    this.#keptBytes += data.length;
    while (this.#events.length > MAX_KEPT_EVENTS || (this.#keptBytes > MAX_KEPT_BYTES && this.#events.length > 1)) {
      this.#keptBytes -= this.#events.shift()?.data.length ?? 0;
    }
    this.#log?.event(event, { keep: this.#events.length, isFirst: event.sequence === 1 });
    return `${this.id}.${this.#sequence}`;
  }
}

function answeredId(data: string): unknown {
  const message: unknown = data === "" ? undefined : JSON.parse(data);
  return isObject(message) && !("method" in message) ? message["id"] : undefined;
}

/** Parses `Last-Event-ID`. Undefined for an id that no server has generated. */
export function parseEventId(text: string): { readonly streamId: string; readonly sequence: number } | undefined {
  const match = /^([A-Za-z0-9_-]{16})\.(\d{1,15})$/.exec(text);
  return match === null ? undefined : { streamId: match[1] ?? "", sequence: Number(match[2]) };
}
