import { setTimeout as pause } from "node:timers/promises";
import type { Runner } from "./served-file.ts";
import type { FileReport } from "./workers/worker-protocol.ts";

/** Clients that come with the start of the server have their first answers by then. */
const BEGIN_AFTER_MS = 1000;

interface FirstLoadsOptions {
  /** Loads a file where its calls run. */
  readonly load: (file: string) => Promise<FileReport>;
  /** Whether it is another file by now: then whoever watches it looks at it. */
  readonly hasChanged: (file: string) => boolean;
  /** It brings something else than it brought before, or cannot be loaded. */
  readonly onDifferent: (file: string) => Promise<void>;
}

/**
 * Files that are served as they were described earlier, and that nobody has loaded yet. A call loads its file; when the
 * server has started, the others are loaded one by one, to see whether they still are what they were: the texts are
 * the same, but a service that they ask, or a file that they read, may be another.
 */
export class FirstLoads {
  readonly #options: FirstLoadsOptions;
  readonly #reports = new Map<string, string>();
  readonly #end = new AbortController();
  #work: Promise<void> = Promise.resolve();

  constructor(options: FirstLoadsOptions) {
    this.#options = options;
  }

  add(file: string, report: FileReport): void {
    this.#reports.set(file, JSON.stringify(report));
  }

  forget(file: string): void {
    this.#reports.delete(file);
  }

  start(): void {
    if (this.#reports.size > 0) void this.#queue(() => this.#loadAll());
  }

  /** The first call may be what loads the file. When it fails, whether the file is to blame is seen at once. */
  runner(file: string, runner: Runner): Runner {
    return {
      run: (options) => {
        const output = runner.run(options);
        if (this.#reports.has(file)) output.catch(() => void this.#queue(() => this.#check(file)));
        return output;
      },
    };
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#work;
  }

  #queue(work: () => Promise<void>): Promise<void> {
    this.#work = Promise.all([this.#work, work()]).then(() => undefined);
    return this.#work;
  }

  async #loadAll(): Promise<void> {
    await this.#pause(BEGIN_AFTER_MS);
    for (const file of new Set(this.#reports.keys())) {
      if (this.#end.signal.aborted) return;
      const startedAt = performance.now();
      await this.#check(file);
      // Half of the time is left to calls.
      await this.#pause(performance.now() - startedAt);
    }
  }

  async #check(file: string): Promise<void> {
    const { load, hasChanged, onDifferent } = this.#options;
    const before = this.#reports.get(file);
    if (before === undefined || hasChanged(file)) return;
    const report = await load(file);
    const isStillAsked = this.#reports.get(file) === before && !hasChanged(file) && !this.#end.signal.aborted;
    if (!isStillAsked) return;
    this.#reports.delete(file);
    if (JSON.stringify(report) !== before) await onDifferent(file);
  }

  async #pause(milliseconds: number): Promise<void> {
    // It only ends early when the server does.
    await pause(milliseconds, undefined, { ref: false, signal: this.#end.signal }).catch(() => undefined);
  }
}
