import type { Runtime } from "../runtimes/runtime.ts";

/** The runtime of single templates: opened when the first sandbox needs it, and again when that failed. */
export class LateRuntime implements Runtime {
  readonly name: Runtime["name"];
  readonly #open: () => Promise<Runtime>;
  #opened: Promise<Runtime> | undefined;

  constructor(name: Runtime["name"], open: () => Promise<Runtime>) {
    this.name = name;
    this.#open = open;
  }

  async probe(signal: AbortSignal): ReturnType<Runtime["probe"]> {
    return await (await this.#runtime()).probe(signal);
  }

  async start(...args: Parameters<Runtime["start"]>): ReturnType<Runtime["start"]> {
    return await (await this.#runtime()).start(...args);
  }

  async discard(folder: string): Promise<void> {
    await (await this.#ifOpen())?.discard(folder);
  }

  async reap(): ReturnType<Runtime["reap"]> {
    return await (await this.#runtime()).reap();
  }

  async close(): Promise<void> {
    await (await this.#ifOpen())?.close();
  }

  async #runtime(): Promise<Runtime> {
    this.#opened ??= this.#open();
    try {
      return await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  async #ifOpen(): Promise<Runtime | undefined> {
    return await this.#opened?.catch(() => undefined);
  }
}
