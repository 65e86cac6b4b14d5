import type { Readable, Writable } from "node:stream";
import type { GuestMethod, GuestOutput, GuestParams, GuestResult } from "../contract/guest.ts";
import { CANCEL_METHOD, encodeFrame, ERROR_CODES, FrameReader, OUTPUT_METHOD } from "../contract/json-rpc.ts";
import { BadParams, Failure } from "./failure.ts";
import { isRecord } from "./processes/line-reader.ts";
import { serveTimed } from "./timings.ts";

type Handler<M extends GuestMethod> = (
  params: GuestParams[M],
  signal: AbortSignal,
) => GuestResult<M> | Promise<GuestResult<M>>;

export type Handlers = { readonly [M in GuestMethod]: Handler<M> };

/** The connection to the server. The guest trusts it: requests are not checked against the contract. */
export class ServerConnection {
  readonly #input: Readable;
  readonly #output: Writable;
  /** Requests in flight, by id. */
  readonly #running = new Map<string, AbortController>();

  constructor(input: Readable, output: Writable) {
    this.#input = input;
    this.#output = output;
  }

  sendOutput(output: GuestOutput): void {
    this.#send({ method: OUTPUT_METHOD, params: output });
  }

  /** Answers requests until the input ends. */
  serve(handlers: Partial<Handlers>): void {
    const frames = new FrameReader(Number.POSITIVE_INFINITY);
    this.#input.on("data", (chunk: Buffer) => {
      for (const body of frames.read(chunk)) this.#receive(JSON.parse(body.toString("utf8")), handlers);
    });
  }

  #receive(message: unknown, handlers: Partial<Handlers>): void {
    if (!isRecord(message)) return;
    const { id, method, params } = message;
    if (method === CANCEL_METHOD && isRecord(params)) this.#running.get(String(params["id"]))?.abort();
    if (typeof id === "string" && typeof method === "string") void this.#answer({ id, method, params }, handlers);
  }

  async #answer(
    { id, method, params }: { readonly id: string; readonly method: string; readonly params: unknown },
    handlers: Partial<Handlers>,
  ): Promise<void> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      if (!isRecord(params)) throw new BadParams("params must be an object");
      const handler = handlerOf(method, handlers);
      if (handler === undefined) {
        this.#send({ id, error: { code: ERROR_CODES.methodNotFound, message: `there is no method ${method}` } });
        return;
      }
      this.#send({ id, result: await serveTimed(params, () => handler(params, controller.signal)) });
    } catch (error) {
      this.#send({ id, error: toErrorAnswer(error) });
    } finally {
      this.#running.delete(id);
    }
  }

  #send(message: object): void {
    this.#output.write(encodeFrame({ jsonrpc: "2.0", ...message }));
  }
}

type AnyHandler = (params: object, signal: AbortSignal) => object | Promise<object>;

function handlerOf(method: string, handlers: Partial<Handlers>): AnyHandler | undefined {
  // oxlint-disable-next-line typescript/consistent-type-assertions -- the compiler does not follow the method through the table
  return Object.hasOwn(handlers, method) ? (handlers[method as GuestMethod] as AnyHandler) : undefined;
}

function toErrorAnswer(error: unknown): { readonly code: number; readonly message: string; readonly data?: object } {
  if (error instanceof Failure) return { code: ERROR_CODES.failure, message: error.message, data: error.data };
  const message = error instanceof Error ? error.message : String(error);
  return { code: error instanceof BadParams ? ERROR_CODES.invalidParams : ERROR_CODES.internalError, message };
}
