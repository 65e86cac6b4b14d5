import type { Logger } from "../telemetry/logger.ts";
import type { Runner } from "./served-file.ts";
import { InlineRunner } from "./workers/inline-runner.ts";
import type { LaunchWorker } from "./workers/launch-process.ts";
import type { RemoteTarget, UseSandbox } from "./workers/remote-call.ts";
import { WorkerPool } from "./workers/worker-pool.ts";

export type HandlerLanguage = "node" | "python";

function languageOf(file: string): HandlerLanguage {
  return file.endsWith(".py") ? "python" : "node";
}

export interface GenerationOptions {
  /** Starts a worker; undefined for a language whose handlers run in the server's own process. */
  readonly launch: Readonly<Record<HandlerLanguage, LaunchWorker | undefined>>;
  readonly cacheFolder: string;
  readonly maxWorkers: number;
  readonly isPerClient: boolean;
  readonly maxLineChars: number;
  readonly useSandbox?: UseSandbox | undefined;
  readonly sourcesOf: (file: string) => ReadonlyMap<string, string> | undefined;
  readonly logger: Logger;
  readonly onChanged: (remote: RemoteTarget) => void;
  readonly onListChanged: (list: string) => void;
  readonly onLead: (generation: Generation) => void;
}

/** A blocked Node worker blocks all of its calls, so a second one is on standby; Python workers run one call at a time. */
const KEPT: Readonly<Record<HandlerLanguage, number>> = { node: 2, python: 1 };

/** The processes that run one version of the files. A change of a file starts the next generation. */
export class Generation {
  readonly #options: GenerationOptions;
  readonly #pools = new Map<HandlerLanguage, WorkerPool>();
  #inline: InlineRunner | undefined;

  constructor(options: GenerationOptions) {
    this.#options = options;
  }

  /** The runner of a file; it is started when it is first used. */
  runnerFor(file: string): Runner {
    const language = languageOf(file);
    const launch = this.#options.launch[language];
    if (launch === undefined) return (this.#inline ??= new InlineRunner(this.#options));
    let pool = this.#pools.get(language);
    if (pool === undefined) {
      const { maxWorkers, logger, onLead } = this.#options;
      pool = new WorkerPool({
        ...this.#options,
        launch,
        logger: logger.child({ handlers: language }),
        size: Math.min(maxWorkers, KEPT[language]),
        maxSize: maxWorkers,
        onLead: () => onLead(this),
      });
      this.#pools.set(language, pool);
    }
    return pool;
  }

  /** Serves the old code of a file that is broken on disk, in processes that start later too. */
  keep(file: string, sources: ReadonlyMap<string, string>): void {
    this.#pools.get(languageOf(file))?.keep(sources);
  }

  /** Running calls may finish; then the processes end. */
  retire(): void {
    for (const pool of this.#pools.values()) pool.retire();
  }

  /** Retired, and all of its processes have exited. */
  get isOver(): boolean {
    return [...this.#pools.values()].every(({ isOver }) => isOver);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }
}
