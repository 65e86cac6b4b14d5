import type esbuild from "esbuild";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { OwlError } from "../../../errors/owl-error.ts";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Cut } from "../checkpoint.ts";
import type { LedgerReader } from "../store.ts";

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
   * Resolves when the thread has ended by itself, at the end of a page or of a query. Terminating a thread while the
   * database library prepares a statement ends the whole process: the library cannot handle that Node refuses its calls
   * then.
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
      // Only a pending reply keeps the process alive.
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

/** The compiled thread is beside this file. */
function threadFile(workerData: ThreadData): ConstructorParameters<typeof Worker> {
  return import.meta.url.endsWith(".ts")
    ? [bundleSource(new URL("./thread-main.ts", import.meta.url)), { workerData, eval: true }]
    : [new URL("./thread-main.js", import.meta.url), { workerData }];
}

const require = createRequire(import.meta.url);
let bundled: string | undefined;

/**
 * Used when the server runs from its sources, as in tests: a thread has no loader for TypeScript, so it gets one
 * compiled text.
 */
export function bundleSource(file: URL): string {
  if (bundled !== undefined) return bundled;
  // oxlint-disable-next-line typescript/no-unsafe-assignment -- a package of the development set-up, loaded only there
  const { buildSync }: typeof esbuild = require("esbuild");
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(file)],
    bundle: true,
    write: false,
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["libsql"],
  });
  const base = `require = require("node:module").createRequire(${JSON.stringify(import.meta.url)});`;
  bundled = `${base}\n${outputFiles[0]?.text ?? ""}`;
  return bundled;
}

/** The data that a thread starts with. */
export interface ThreadData {
  readonly path: string;
  readonly keyFolder: string;
  readonly checkpointEvery: number;
}

/** The methods that a thread serves: operations that may take long. */
export interface ThreadMethods extends LedgerReader {
  cut(beforeMs: number): Promise<Cut | undefined> | Cut | undefined;
  /** Moves the content of the log to the database file, and restarts the log. */
  emptyLog(): Promise<void> | void;
}

export interface ThreadRequest {
  readonly id: number;
  readonly method: keyof ThreadMethods;
  readonly params: readonly unknown[];
}

export interface ThreadReply {
  readonly id: number;
  readonly value?: unknown;
  /** The class of an error is lost between threads; the fields that callers need are kept. */
  readonly failure?: { readonly message: string; readonly hint: string; readonly retryable: boolean };
}
