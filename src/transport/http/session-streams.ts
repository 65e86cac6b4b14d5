import type { SessionLog } from "../../cluster/session-log.ts";
import type { StoredStream, SessionState } from "../../cluster/session-state.ts";
import type { JsonRpcMessage, RequestId, JsonRpcRequest, JsonRpcResponse } from "../../mcp/json-rpc.ts";
import type { EventStream } from "./event-stream.ts";
import { parseEventId, RESUME_WINDOW_MS, ResumableStream, type StreamLog } from "./resumable-stream.ts";

const MAX_STREAMS = 64;

interface OpenOptions {
  readonly requestIds: readonly RequestId[];
  readonly onAbandoned?: () => void;
  readonly stored?: StoredStream;
}

/**
 * The streams of one session: one for messages without a request, and one for each request that sends more than its
 * answer.
 */
export class SessionStreams {
  readonly #streams = new Map<string, ResumableStream>();
  readonly #standalone: ResumableStream;
  /** Stores the streams for other servers, once the session is initialized. */
  log: SessionLog | undefined;

  constructor(stored: readonly StoredStream[] = []) {
    for (const stream of stored) this.open({ requestIds: stream.requestIds, stored: stream });
    const standalone = stored.find(({ requestIds }) => requestIds.length === 0)?.id ?? "";
    this.#standalone = this.#streams.get(standalone) ?? this.open({ requestIds: [] });
  }

  get areConnected(): boolean {
    return [...this.#streams.values()].some(({ isConnected }) => isConnected);
  }

  open({ requestIds, onAbandoned, stored }: OpenOptions): ResumableStream {
    const stream = new ResumableStream({
      requestIds,
      stored,
      ...(onAbandoned && { onAbandoned }),
      logFor: (id) => this.#logOf(id, requestIds),
    });
    this.#streams.set(stream.id, stream);
    if (this.#streams.size > MAX_STREAMS) this.#forgetOldestEnded();
    return stream;
  }

  /** Sends a message that belongs to no request. */
  send(message: JsonRpcMessage): void {
    this.#standalone.send(message);
  }

  /** The stream for messages without a request, unless a client is connected to it. */
  standalone(): ResumableStream | undefined {
    return this.#standalone.isConnected ? undefined : this.#standalone;
  }

  /** Resumes a stream after the last event that the client received. Returns false when there is no such stream. */
  resume(lastEventId: string, openSink: (stream: ResumableStream) => EventStream): boolean {
    const position = parseEventId(lastEventId);
    const stream = position === undefined ? undefined : this.#streams.get(position.streamId);
    if (position === undefined || stream === undefined) return false;
    stream.drop();
    stream.resume(openSink(stream), position.sequence);
    return true;
  }

  forgetLater(stream: ResumableStream): void {
    const timer = setTimeout(() => this.#forget(stream), RESUME_WINDOW_MS);
    timer.unref();
  }

  /** The streams for requests whose server was lost before it answered them. */
  *unanswered(): Iterable<ResumableStream> {
    for (const stream of this.#streams.values()) if (stream !== this.#standalone && !stream.isEnded) yield stream;
  }

  *stored(): Iterable<StoredStream> {
    for (const { id, requestIds, isEnded, events } of this.#streams.values())
      if (events.length > 0) yield { id, requestIds: [...requestIds], isEnded, events };
  }

  close(): void {
    for (const stream of this.#streams.values()) stream.hangUp();
    this.#streams.clear();
  }

  #logOf(id: string, requestIds: readonly RequestId[]): StreamLog {
    const about = { requestIds: [...requestIds] };
    return {
      event: (event, { keep, isFirst }) => this.log?.event(id, { event, keep, ...(isFirst && { about }) }),
      ended: () => this.log?.streamEnded(id, about),
    };
  }

  #forget(stream: ResumableStream): void {
    if (this.#streams.delete(stream.id)) this.log?.streamForgotten(stream.id);
  }

  #forgetOldestEnded(): void {
    for (const stream of this.#streams.values()) {
      if (!stream.isEnded) continue;
      this.#forget(stream);
      return;
    }
  }
}

const MAX_WATCHED = 1000;

/** The state that a session has agreed on with its client, so that another server can continue the session. */
export class SessionMemory {
  readonly #ownerId: string;
  #initialize: Readonly<Record<string, unknown>> = {};
  #logLevel: string | undefined;
  readonly #watched = new Set<string>();

  constructor(ownerId: string) {
    this.#ownerId = ownerId;
  }

  state(): SessionState {
    const logLevel = this.#logLevel;
    return {
      ownerId: this.#ownerId,
      initialize: this.#initialize,
      ...(logLevel !== undefined && { logLevel }),
      watched: [...this.#watched].slice(0, MAX_WATCHED),
    };
  }

  /** Updates the state after a request was answered. Returns what changed. */
  note({ method, params = {} }: JsonRpcRequest, answer: JsonRpcResponse | undefined): "began" | "changed" | undefined {
    if (answer === undefined || !("result" in answer)) return undefined;
    const { level, uri } = params;
    if (method === "initialize") this.#initialize = params;
    else if (method === "logging/setLevel") this.#logLevel = String(level);
    else if (method === "resources/subscribe") this.#watched.add(String(uri));
    else if (method === "resources/unsubscribe") this.#watched.delete(String(uri));
    else return undefined;
    return method === "initialize" ? "began" : "changed";
  }
}

/** The requests that bring a new connection to the state of the old one. */
export function requestsFor({ initialize, logLevel, watched }: SessionState): readonly JsonRpcRequest[] {
  const request = (method: string, params: Readonly<Record<string, unknown>>): JsonRpcRequest => ({
    jsonrpc: "2.0",
    id: 0,
    method,
    params,
  });
  return [
    request("initialize", initialize),
    ...(logLevel === undefined ? [] : [request("logging/setLevel", { level: logLevel })]),
    ...watched.map((uri) => request("resources/subscribe", { uri })),
  ];
}
