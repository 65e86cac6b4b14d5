import { type JsonRpcMessage, type JsonRpcResponse, serializeMessage } from "../../mcp/json-rpc.ts";
import { EventStream } from "./event-stream.ts";
import type { HttpExchange } from "./exchange-io.ts";

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
