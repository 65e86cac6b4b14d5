import type { SessionLog } from "../../cluster/session-log.ts";
import type { TakenSession } from "../../cluster/session-state.ts";
import type { SessionStore } from "../../cluster/session-store.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Caller } from "../../call/call.ts";
import { Connection } from "../../mcp/connection.ts";
import type {
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
  JsonRpcMessage,
  RequestId,
} from "../../mcp/json-rpc.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { errorAnswer } from "../../mcp/wire-error.ts";
import { EventStream } from "./event-stream.ts";
import { onClose, sendEmpty, sendJson, type SessionExchange, acceptsEventStream } from "./exchange-io.ts";
import { quotaHeadersOf } from "./quota-headers.ts";
import type { ResumableStream } from "./resumable-stream.ts";
import { SessionStreams, requestsFor, SessionMemory } from "./session-streams.ts";
import { Lifeline } from "../../call/lifeline.ts";
import { hasResumableStreams } from "../../mcp/versions.ts";

/**
 * The number of ids for requests to the client that each server may use, so that ids of different servers never
 * collide.
 */
const QUESTIONS_PER_SERVER = 2 ** 32;

export interface SessionOptions {
  readonly id: string;
  readonly mcp: Mcp;
  readonly ownerId: string;
  readonly keepAliveMs: number;
  /** Stores the session for other servers. */
  readonly store?: SessionStore | undefined;
  /** The state of the session from another server. */
  readonly taken?: TakenSession | undefined;
}

/** An MCP session over HTTP: one connection, and the streams for messages that are not a plain answer. */
export class Session {
  readonly id: string;
  readonly ownerId: string;
  readonly connection: Connection;
  readonly streams: SessionStreams;
  lastUsedAt: number = performance.now();
  readonly #options: SessionOptions;
  readonly #memory: SessionMemory;
  #log: SessionLog | undefined;

  constructor(options: SessionOptions) {
    const { id, mcp, ownerId, taken } = options;
    this.#options = options;
    this.id = id;
    this.ownerId = ownerId;
    this.#memory = new SessionMemory(ownerId);
    this.streams = new SessionStreams(taken?.streams);
    this.connection = new Connection({
      mcp,
      firstQuestion: (taken?.times ?? 0) * QUESTIONS_PER_SERVER,
      unrelated: (message) => this.streams.send(message),
    });
  }

  get isBusy(): boolean {
    return this.connection.openRequests > 0 || this.streams.areConnected;
  }

  /** The stored log of the session for other servers, once it is initialized. */
  get log(): SessionLog | undefined {
    return this.#log;
  }

  /** Answers the requests of one POST: as JSON, or as a stream once another message must be sent before the answers. */
  async answer(
    requests: readonly JsonRpcRequest[],
    exchange: SessionExchange,
    { isBatch, refusals = [] }: { readonly isBatch: boolean; readonly refusals?: readonly JsonRpcResponse[] },
  ): Promise<void> {
    const { response, traceId } = exchange;
    const reply = new SessionReply(this, exchange, requests);
    const caller = this.callerOf(exchange);
    const answers = await Promise.all(
      requests.map((request) =>
        this.connection.request(request, {
          caller,
          traceId,
          gone: reply.gone,
          stream: (message) => reply.stream(message),
          closeStream: () => reply.closeEarly(),
        }),
      ),
    );
    if (this.#options.store !== undefined)
      for (const [index, request] of requests.entries()) await this.#remember(request, answers[index]);
    const sent = [...refusals, ...answers.filter((answer) => answer !== undefined)];
    if (reply.finish(sent)) return;
    const [only] = sent;
    if (only === undefined) sendEmpty(response, 202, this.headers());
    else sendJson(response, 200, isBatch ? sent : only, { ...this.headers(), ...quotaHeadersOf(sent) });
  }

  notify(message: JsonRpcNotification): void {
    this.connection.notify(message);
  }

  respond(message: JsonRpcResponse): void {
    this.connection.respond(message);
  }

  /** Opens the stream for messages without a request. Returns false when it is already open. */
  listen(exchange: SessionExchange): boolean {
    const stream = this.streams.standalone();
    stream?.connect(this.openSink(exchange, stream));
    return stream !== undefined;
  }

  /** Resumes a stream after the last event that the client received. Returns false when there is no such stream. */
  resume(lastEventId: string, exchange: SessionExchange): boolean {
    return this.streams.resume(lastEventId, (stream) => this.openSink(exchange, stream));
  }

  openSink({ response, principal }: SessionExchange, stream: ResumableStream): EventStream {
    const { keepAliveMs } = this.#options;
    const sink = new EventStream(response, { headers: this.headers(), keepAliveMs, reader: principal });
    onClose(response, () => stream.disconnect(sink));
    return sink;
  }

  headers(): Record<string, string> {
    return { "mcp-session-id": this.id };
  }

  callerOf({ principal, label }: SessionExchange): Caller {
    return { principal, label, transport: "http", protocolVersion: this.connection.version, sessionId: this.id };
  }

  /** Continues the session of another server. Requests that the other server had not answered get an error. */
  async revive({ state }: TakenSession, exchange: SessionExchange): Promise<void> {
    const { traceId } = exchange;
    for (const request of requestsFor(state)) {
      const incoming = { caller: this.callerOf(exchange), traceId, stream: () => undefined, gone: undefined };
      this.#memory.note(request, await this.connection.request(request, incoming));
    }
    this.connection.notify({ jsonrpc: "2.0", method: "notifications/initialized" });
    this.#log = this.#openLog();
    this.streams.log = this.#log;
    for (const stream of this.streams.unanswered()) this.#answerFor(stream, traceId);
  }

  async close(): Promise<void> {
    await this.connection.close();
    this.streams.close();
    this.#log?.leave();
  }

  async #remember(request: JsonRpcRequest, answer: JsonRpcResponse | undefined): Promise<void> {
    const change = this.#memory.note(request, answer);
    if (change === "changed") this.#log?.changed();
    if (change !== "began") return;
    const log = this.#openLog();
    try {
      await log?.begin();
    } catch (error) {
      log?.leave();
      throw error;
    }
    this.#log = log;
    this.streams.log = log;
  }

  #openLog(): SessionLog | undefined {
    return this.#options.store?.log(this.id, {
      state: () => this.#memory.state(),
      streams: () => this.streams.stored(),
    });
  }

  #answerFor(stream: ResumableStream, traceId: string): void {
    const error = new OwlError(
      "session_elsewhere",
      "the server that ran this request is gone, and its answer with it",
      {
        hint: "whether the request was carried out is not known: look before you send it again",
      },
    );
    const { version } = this.connection;
    const options = { version, traceId, withStack: this.#options.mcp.withStack };
    for (const id of stream.unansweredIds()) stream.send(errorAnswer(id, error, options));
    stream.end();
    this.streams.forgetLater(stream);
  }
}

/** The answer to one POST. Whether it is JSON or a stream is decided when there is a message to send. */
export class SessionReply {
  readonly #session: Session;
  readonly #exchange: SessionExchange;
  readonly #requestIds: readonly RequestId[];
  readonly gone: Lifeline = new Lifeline();
  #stream: ResumableStream | undefined;

  constructor(session: Session, exchange: SessionExchange, requests: readonly JsonRpcRequest[]) {
    this.#session = session;
    this.#exchange = exchange;
    this.#requestIds = requests.map(({ id }) => id);
    onClose(exchange.response, () => this.#onClose());
  }

  stream(message: JsonRpcMessage): void {
    const stream = this.#open();
    if (stream !== undefined) stream.send(message);
    else if ("method" in message && "id" in message) this.#refuse(message);
  }

  closeEarly(): void {
    if (hasResumableStreams(this.#session.connection.version)) this.#open()?.drop();
  }

  /** Ends the stream with the answers. Returns false when there is no stream: the answers are then sent as JSON. */
  finish(answers: readonly JsonRpcResponse[]): boolean {
    const stream = this.#stream;
    if (stream === undefined) return false;
    for (const answer of answers) stream.send(answer);
    stream.end();
    this.#session.streams.forgetLater(stream);
    return true;
  }

  #open(): ResumableStream | undefined {
    const { request, response } = this.#exchange;
    if (this.#stream !== undefined || !acceptsEventStream(request) || response.destroyed) return this.#stream;
    const stream = this.#session.streams.open({ requestIds: this.#requestIds, onAbandoned: () => this.gone.end() });
    this.#stream = stream;
    stream.connect(this.#session.openSink(this.#exchange, stream));
    if (hasResumableStreams(this.#session.connection.version)) stream.prime();
    return stream;
  }

  /** Rejects a request to the client that cannot be delivered, so that the call does not wait for its answer. */
  #refuse(question: JsonRpcRequest): void {
    const error = { code: -32600, message: "the client does not accept text/event-stream and cannot be asked" };
    this.#session.respond({ jsonrpc: "2.0", id: question.id, error });
  }

  /** A lost connection cancels the request only when there is no stream that the client can resume. */
  #onClose(): void {
    if (this.#stream === undefined && !this.#exchange.response.writableFinished) this.gone.end();
  }
}
