import { randomBytes } from "node:crypto";
import { type JsonRpcMessage, serializeMessage } from "../../protocol/json-rpc.ts";
import type { EventStream } from "./event-stream.ts";

const MAX_KEPT_EVENTS = 1000;
const MAX_KEPT_BYTES = 4 * 1024 * 1024;
/** How soon a client should come back when the server ends a stream early. */
const RETRY_MS = 500;

interface KeptEvent {
  readonly sequence: number;
  readonly data: string;
}

/** One stream of messages that outlives the connection carrying it: a client that lost it reads on from its last event. */
export class ResumableStream {
  readonly id: string = randomBytes(12).toString("base64url");
  readonly #events: KeptEvent[] = [];
  #keptBytes = 0;
  #sequence = 0;
  #sink: EventStream | undefined;
  #ended = false;

  get isConnected(): boolean {
    return this.#sink !== undefined;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  connect(sink: EventStream): void {
    this.#sink = sink;
  }

  /** The connection is gone; events are kept for the next one. */
  disconnect(sink: EventStream): void {
    if (this.#sink === sink) this.#sink = undefined;
  }

  /** Ends the connection and leaves the stream open, so that the client comes back for the rest. */
  drop(): void {
    this.#sink?.end();
    this.#sink = undefined;
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

  end(): void {
    this.#ended = true;
    this.drop();
  }

  /** Sends what came after the given event to a new connection, and goes on there. */
  resume(sink: EventStream, lastSequence: number): void {
    for (const { sequence, data } of this.#events) {
      if (sequence > lastSequence && data !== "") sink.send({ event: "message", id: `${this.id}.${sequence}`, data });
    }
    if (this.#ended) sink.end();
    else this.#sink = sink;
  }

  #keep(data: string): string {
    this.#sequence += 1;
    this.#events.push({ sequence: this.#sequence, data });
    this.#keptBytes += data.length;
    while (this.#events.length > MAX_KEPT_EVENTS || (this.#keptBytes > MAX_KEPT_BYTES && this.#events.length > 1)) {
      this.#keptBytes -= this.#events.shift()?.data.length ?? 0;
    }
    return `${this.id}.${this.#sequence}`;
  }
}

/** Reads `Last-Event-ID`; anything that is not of our making is nothing. */
export function parseEventId(text: string): { readonly streamId: string; readonly sequence: number } | undefined {
  const match = /^([A-Za-z0-9_-]{16})\.(\d{1,15})$/.exec(text);
  return match === null ? undefined : { streamId: match[1] ?? "", sequence: Number(match[2]) };
}
