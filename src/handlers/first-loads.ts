import { setTimeout as pause } from "node:timers/promises";
import type { Runner } from "./served-file.ts";
import type { FileReport } from "./workers/worker-protocol.ts";

/** Clients that connect at the start of the server get their first answers before this. */
const BEGIN_AFTER_MS = 1000;

interface FirstLoadsOptions {
  /** Loads a file in the process that runs its calls. */
  readonly load: (file: string) => Promise<FileReport>;
  /** Whether the file changed on disk: then the watcher loads it. */
  readonly hasChanged: (file: string) => boolean;
  /** Called when the report differs from the cached one, or the file cannot be loaded. */
  readonly onDifferent: (file: string) => Promise<void>;
}

/**
 * Files that are served from a cached report and that were not loaded yet. A call loads its file; the others are loaded one
 * by one after the start, to compare their reports with the cached ones: the sources are the same, but a service or a
 * data file that they read while loading may have changed.
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

  /** A failed call may be the first load of the file: the file is checked at once. */
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
      // Leaves half of the time to calls.
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
    // Rejects only when the server stops.
    await pause(milliseconds, undefined, { ref: false, signal: this.#end.signal }).catch(() => undefined);
  }
}
