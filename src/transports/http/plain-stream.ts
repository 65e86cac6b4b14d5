import { type JsonRpcMessage, type JsonRpcResponse, serializeMessage } from "../../protocol/json-rpc.ts";
import { EventStream } from "./event-stream.ts";
import { acceptsEventStream, type HttpExchange } from "./exchange-io.ts";

/** The answer to a client without session becomes a stream only when something must be said first, and it can be read. */
export class PlainStream {
  readonly #exchange: HttpExchange;
  readonly #keepAliveMs: number;
  #stream: EventStream | undefined;

  constructor(exchange: HttpExchange, keepAliveMs: number) {
    this.#exchange = exchange;
    this.#keepAliveMs = keepAliveMs;
  }

  send(message: JsonRpcMessage): void {
    const { request, response, principal } = this.#exchange;
    if (!acceptsEventStream(request)) return;
    this.#stream ??= new EventStream(response, { headers: {}, keepAliveMs: this.#keepAliveMs, reader: principal });
    this.#stream.send({ event: "message", data: serializeMessage(message) });
  }

  /** Ends the stream with the answers; says no when there is none and the answers go out as JSON. */
  finish(answers: readonly JsonRpcResponse[]): boolean {
    if (this.#stream === undefined) return false;
    for (const answer of answers) this.#stream.send({ event: "message", data: serializeMessage(answer) });
    this.#stream.end();
    return true;
  }
}
