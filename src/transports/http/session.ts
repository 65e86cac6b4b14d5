import type { Caller } from "../../pipeline/caller.ts";
import { Lifeline } from "../../pipeline/lifeline.ts";
import { attachServer } from "../../protocol/attach-server.ts";
import { Connection } from "../../protocol/connection.ts";
import type { JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../../protocol/json-rpc.ts";
import type { Mcp } from "../../protocol/mcp.ts";
import { hasResumableStreams } from "../../protocol/versions.ts";
import { EventStream } from "./event-stream.ts";
import { acceptsEventStream, type AnswerSink, sendEmpty, sendJson, type SessionExchange } from "./exchange-io.ts";
import { quotaHeadersOf } from "./quota-headers.ts";
import { parseEventId, RESUME_WINDOW_MS, ResumableStream } from "./resumable-stream.ts";

const MAX_STREAMS = 64;

export interface SessionOptions {
  readonly id: string;
  readonly mcp: Mcp;
  readonly ownerId: string;
  readonly keepAliveMs: number;
  readonly fastPath: boolean;
}

/** An MCP session over HTTP: one connection, and the streams that carry what is not a plain answer. */
export class Session {
  readonly id: string;
  readonly ownerId: string;
  readonly connection: Connection;
  lastUsedAt: number = performance.now();
  readonly #options: SessionOptions;
  readonly #streams = new Map<string, ResumableStream>();
  readonly #standalone = new ResumableStream();

  constructor(options: SessionOptions) {
    const { id, mcp, ownerId, fastPath } = options;
    this.#options = options;
    this.id = id;
    this.ownerId = ownerId;
    this.#streams.set(this.#standalone.id, this.#standalone);
    this.connection = new Connection({
      mcp,
      fastPath,
      unrelated: (message) => this.#standalone.send(message),
      attach: (transport) => attachServer(mcp, transport, { followsChanges: true }),
    });
  }

  get isBusy(): boolean {
    return this.connection.openRequests > 0 || [...this.#streams.values()].some(({ isConnected }) => isConnected);
  }

  /** Answers the requests of one POST: as JSON, or as a stream from the moment that something else must be said first. */
  async answer(
    requests: readonly JsonRpcRequest[],
    exchange: SessionExchange,
    { isBatch, refusals = [] }: { readonly isBatch: boolean; readonly refusals?: readonly JsonRpcResponse[] },
  ): Promise<void> {
    const { response, traceId } = exchange;
    const reply = new Reply(this, exchange);
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

  /** Opens the stream for what belongs to no request; says no when there is one. */
  listen({ response }: SessionExchange): boolean {
    if (this.#standalone.isConnected) return false;
    this.#standalone.connect(this.openSink(response, this.#standalone));
    return true;
  }

  /** Goes on with a stream after the event that the client saw last; says no when there is no such stream. */
  resume(lastEventId: string, { response }: SessionExchange): boolean {
    const position = parseEventId(lastEventId);
    const stream = position === undefined ? undefined : this.#streams.get(position.streamId);
    if (position === undefined || stream === undefined) return false;
    stream.drop();
    stream.resume(this.openSink(response, stream), position.sequence);
    return true;
  }

  openStream(onAbandoned: () => void): ResumableStream {
    const stream = new ResumableStream(onAbandoned);
    this.#streams.set(stream.id, stream);
    if (this.#streams.size > MAX_STREAMS) this.#forgetOldestEnded();
    return stream;
  }

  openSink(response: AnswerSink, stream: ResumableStream): EventStream {
    const sink = new EventStream(response, { headers: this.headers(), keepAliveMs: this.#options.keepAliveMs });
    response.once("close", () => stream.disconnect(sink));
    return sink;
  }

  forgetLater(stream: ResumableStream): void {
    const timer = setTimeout(() => this.#streams.delete(stream.id), RESUME_WINDOW_MS);
    timer.unref();
  }

  headers(): Record<string, string> {
    return { "mcp-session-id": this.id };
  }

  callerOf({ principal, label }: SessionExchange): Caller {
    return { principal, label, transport: "http", protocolVersion: this.connection.version, sessionId: this.id };
  }

  async close(): Promise<void> {
    await this.connection.close();
    for (const stream of this.#streams.values()) stream.end();
    this.#streams.clear();
  }

  #forgetOldestEnded(): void {
    for (const stream of this.#streams.values()) {
      if (!stream.isEnded) continue;
      this.#streams.delete(stream.id);
      return;
    }
  }
}

/** How one POST is answered: nothing is decided until there is something to send. */
class Reply {
  readonly #session: Session;
  readonly #exchange: SessionExchange;
  readonly gone: Lifeline = new Lifeline();
  #stream: ResumableStream | undefined;

  constructor(session: Session, exchange: SessionExchange) {
    this.#session = session;
    this.#exchange = exchange;
    exchange.response.once("close", () => this.#onClose());
  }

  stream(message: JsonRpcMessage): void {
    const stream = this.#open();
    if (stream !== undefined) stream.send(message);
    else if ("method" in message && "id" in message) this.#refuse(message);
  }

  closeEarly(): void {
    if (hasResumableStreams(this.#session.connection.version)) this.#open()?.drop();
  }

  /** Ends the stream with the answers; says no when there is none and the answers go out as JSON. */
  finish(answers: readonly JsonRpcResponse[]): boolean {
    const stream = this.#stream;
    if (stream === undefined) return false;
    for (const answer of answers) stream.send(answer);
    stream.end();
    this.#session.forgetLater(stream);
    return true;
  }

  #open(): ResumableStream | undefined {
    const { request, response } = this.#exchange;
    if (this.#stream !== undefined || !acceptsEventStream(request) || response.destroyed) return this.#stream;
    const stream = this.#session.openStream(() => this.gone.end());
    this.#stream = stream;
    stream.connect(this.#session.openSink(response, stream));
    if (hasResumableStreams(this.#session.connection.version)) stream.prime();
    return stream;
  }

  /** A question that cannot reach the client is answered for it, so that nobody waits. */
  #refuse(question: JsonRpcRequest): void {
    const error = { code: -32600, message: "the client does not accept text/event-stream and cannot be asked" };
    this.#session.respond({ jsonrpc: "2.0", id: question.id, error });
  }

  /** A lost connection is no cancellation while the client can resume; it is one when there was nothing to resume. */
  #onClose(): void {
    if (this.#stream === undefined && !this.#exchange.response.writableFinished) this.gone.end();
  }
}
