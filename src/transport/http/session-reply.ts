import { Lifeline } from "../../call/lifeline.ts";
import type { JsonRpcMessage, JsonRpcRequest, JsonRpcResponse, RequestId } from "../../mcp/json-rpc.ts";
import { hasResumableStreams } from "../../mcp/versions.ts";
import { acceptsEventStream, onClose, type SessionExchange } from "./exchange-io.ts";
import type { ResumableStream } from "./resumable-stream.ts";
import type { Session } from "./session.ts";

/** How one POST is answered: nothing is decided until there is something to send. */
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

  /** Ends the stream with the answers; says no when there is none and the answers go out as JSON. */
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
