import { randomBytes } from "node:crypto";
import { isObject, type JsonRpcMessage, type RequestId, serializeMessage } from "../../mcp/json-rpc.ts";
import type { StoredStream, StreamEvent } from "../../cluster/session-state.ts";
import type { EventStream } from "./event-stream.ts";

/** A lost stream is kept this long for its client to come back, and a finished one to be read. */
export const RESUME_WINDOW_MS = 10_000;
const MAX_KEPT_EVENTS = 1000;
const MAX_KEPT_BYTES = 4 * 1024 * 1024;
/** How soon a client should come back when the server ends a stream early. */
const RETRY_MS = 500;

/** Hears of what must outlive the server. */
export interface StreamLog {
  event(event: StreamEvent, facts: { readonly keep: number; readonly isFirst: boolean }): void;
  ended(): void;
}

export interface ResumableStreamOptions {
  /** Is called when the client lost the stream, however often before, and did not come back in time. */
  readonly onAbandoned?: () => void;
  /** The requests that are answered on it. */
  readonly requestIds?: readonly RequestId[];
  readonly logFor?: ((id: string) => StreamLog) | undefined;
  /** What another server had of this stream. */
  readonly stored?: StoredStream | undefined;
}

/** One stream of messages that outlives the connection carrying it: a client that lost it reads on from its last event. */
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

  /** What is kept of it, for the client or for another server. */
  get events(): readonly StreamEvent[] {
    return this.#events;
  }

  get isConnected(): boolean {
    return this.#sink !== undefined;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** The requests whose answers are not among the events. */
  unansweredIds(): readonly RequestId[] {
    const answered = new Set(this.#events.map(({ data }) => answeredId(data)));
    return this.requestIds.filter((id) => !answered.has(id));
  }

  connect(sink: EventStream): void {
    clearTimeout(this.#waiting);
    this.#sink = sink;
  }

  /** The connection is gone; events are kept for the next one. */
  disconnect(sink: EventStream): void {
    if (this.#sink !== sink) return;
    this.#sink = undefined;
    this.#awaitClient();
  }

  /** Ends the connection and leaves the stream open, so that the client comes back for the rest. */
  drop(): void {
    if (this.#sink === undefined) return;
    this.#sink.end();
    this.#sink = undefined;
    this.#awaitClient();
  }

  /** An event without data, which tells the client where to resume before anything has happened. */
  prime(): void {
    const id = this.#keep("");
    this.#sink?.send({ id, retryMs: RETRY_MS, data: "" });
  }

  send(message: JsonRpcMessage): void {
    const data = serializeMessage(message);
    const id = this.#keep(data);
    this.#sink?.send({ event: "message", id, data });
  }

  /** Ends with this server; another may go on with it. */
  hangUp(): void {
    this.#ended = true;
    clearTimeout(this.#waiting);
    this.drop();
  }

  end(): void {
    if (!this.#ended) this.#log?.ended();
    this.hangUp();
  }

  /** Sends what came after the given event to a new connection, and goes on there. */
  resume(sink: EventStream, lastSequence: number): void {
    // The server that was lost may have told its last events to nobody but the client.
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

/** Reads `Last-Event-ID`; anything that is not of our making is nothing. */
export function parseEventId(text: string): { readonly streamId: string; readonly sequence: number } | undefined {
  const match = /^([A-Za-z0-9_-]{16})\.(\d{1,15})$/.exec(text);
  return match === null ? undefined : { streamId: match[1] ?? "", sequence: Number(match[2]) };
}
