import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { OwlError } from "../../../errors/owl-error.ts";
import { bundleSource } from "./bundle-source.ts";
import type { ThreadData, ThreadMethods, ThreadReply, ThreadRequest } from "./thread-messages.ts";

type Method = keyof ThreadMethods;
type Params<M extends Method> = Parameters<ThreadMethods[M]>;
type Result<M extends Method> = Awaited<ReturnType<ThreadMethods[M]>>;

/** A thread with one connection. It starts with the first call, and again with the next call after it died. */
export class SqliteThread {
  readonly #data: ThreadData;
  readonly #waiting = new Map<number, (reply: ThreadReply) => void>();
  #worker: Worker | undefined;
  #nextId = 1;
  #closing: Promise<void> | undefined;

  constructor(data: ThreadData) {
    this.#data = data;
  }

  call<M extends Method>(method: M, ...params: Params<M>): Promise<Result<M>> {
    return this.#closing === undefined ? this.#call(method, ...params) : Promise.reject(toError(CLOSED));
  }

  /**
   * Resolves when the thread has ended by itself, at the end of a page or of a query. A thread that is stopped while the
   * database's library makes a statement takes the whole process with it: the library cannot bear that Node refuses it.
   */
  close(): Promise<void> {
    return (this.#closing ??= this.#end());
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    await this.#call("close").catch(() => undefined);
    worker.ref();
    if (this.#worker === worker) await once(worker, "exit");
  }

  #call<M extends Method>(method: M, ...params: Params<M>): Promise<Result<M>> {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, ({ value, failure }) => {
        if (failure !== undefined) reject(toError(failure));
        // oxlint-disable-next-line typescript/consistent-type-assertions -- our own thread answers by the same interface
        else resolve(value as Result<M>);
      });
      const request: ThreadRequest = { id, method, params };
      const worker = this.#start();
      // A process stays for an answer that is due, and for nothing else.
      worker.ref();
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage(request);
    });
  }

  #start(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(...threadFile(this.#data));
    this.#worker = worker;
    worker.on("message", (reply: ThreadReply) => this.#settle(reply));
    const fail = (reason: string): void => {
      if (this.#worker === worker) this.#worker = undefined;
      const failure = { message: `the ledger's thread ended: ${reason}`, hint: "Try again.", retryable: true };
      for (const id of this.#waiting.keys()) this.#settle({ id, failure });
    };
    worker.on("error", (error) => fail(error instanceof Error ? error.message : String(error)));
    worker.on("exit", (code) => fail(`exit code ${code}`));
    return worker;
  }

  #settle(reply: ThreadReply): void {
    const settle = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (this.#waiting.size === 0) this.#worker?.unref();
    settle?.(reply);
  }
}

const CLOSED = { message: "the ledger is closed", hint: "The server is stopping.", retryable: false };

function toError({ message, hint, retryable }: NonNullable<ThreadReply["failure"]>): OwlError {
  return new OwlError("store_unavailable", message, { hint, retryable });
}

/** Beside this file when it is compiled. */
function threadFile(workerData: ThreadData): ConstructorParameters<typeof Worker> {
  return import.meta.url.endsWith(".ts")
    ? [bundleSource(new URL("./thread-main.ts", import.meta.url)), { workerData, eval: true }]
    : [new URL("./thread-main.js", import.meta.url), { workerData }];
}
