import { setTimeout as delay } from "node:timers/promises";
import { type OwlError, toPathlessError } from "../errors/owl-error.ts";
import type { Runtime, RuntimeTrouble } from "./runtimes/runtime.ts";

const FIRST_PAUSE_MS = 3000;
const MAX_PAUSE_MS = 30_000;
/** For an engine that hangs: a server that stops does not wait longer until it is open. */
const CLOSE_TIMEOUT_MS = 10_000;

/** The runtime of single templates: opened when the first sandbox needs it, or ahead of that, and again when that failed. */
export class LateRuntime implements Runtime {
  readonly name: Runtime["name"];
  readonly #open: (signal: AbortSignal) => Promise<Runtime>;
  readonly #closing = new AbortController();
  #opened: Promise<Runtime> | undefined;
  #running: Runtime | undefined;
  #failure: OwlError | undefined;
  #retry: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(name: Runtime["name"], open: (signal: AbortSignal) => Promise<Runtime>) {
    this.name = name;
    this.#open = open;
  }

  /** Whatever waits was started, so by then it is known. */
  get maxWaitMs(): number | undefined {
    return this.#running?.maxWaitMs;
  }

  /** Nobody waits for it. What dead servers left is removed with it, and what keeps it from opening is known before somebody needs it. */
  openAhead(): void {
    this.#runtime().catch(() => {
      if (this.#failure?.retryable !== true || this.#closing.signal.aborted) return;
      this.#retry = setTimeout(() => this.openAhead(), this.#pauseMs).unref();
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    });
  }

  async probe(...args: Parameters<Runtime["probe"]>): ReturnType<Runtime["probe"]> {
    return await (await this.#runtime()).probe(...args);
  }

  async start(...args: Parameters<Runtime["start"]>): ReturnType<Runtime["start"]> {
    return await (await this.#runtime()).start(...args);
  }

  async discard(folder: string): Promise<boolean> {
    return (await (await this.#ifOpen())?.discard(folder)) ?? true;
  }

  left(): number {
    return this.#running?.left?.() ?? 0;
  }

  async reap(): ReturnType<Runtime["reap"]> {
    return await (await this.#runtime()).reap();
  }

  trouble(): RuntimeTrouble | undefined {
    if (this.#running !== undefined) return this.#running.trouble?.();
    return this.#failure && { error: this.#failure };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#retry);
    const late = delay(CLOSE_TIMEOUT_MS, undefined, { ref: false });
    await (await Promise.race([this.#ifOpen(), late]))?.close();
  }

  async #runtime(): Promise<Runtime> {
    this.#opened ??= this.#open(this.#closing.signal);
    try {
      this.#running = await this.#opened;
      return this.#running;
    } catch (error) {
      this.#opened = undefined;
      this.#failure = toPathlessError(error, "sandbox_unavailable");
      throw error;
    }
  }

  async #ifOpen(): Promise<Runtime | undefined> {
    return await this.#opened?.catch(() => undefined);
  }
}
