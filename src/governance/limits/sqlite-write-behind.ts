/** Counts that are in memory and on their way to the file. */
interface Batch {
  /** Of nothing: one promise is the answer to all that have nothing to be told. */
  readonly counted: Promise<readonly never[]>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface WriteBehindOptions {
  /** Writes everything that is not on file yet; throws when it cannot. */
  readonly write: () => void;
  /** Nothing has come since the last look, so long already. */
  readonly onIdle: (idleMs: number) => void;
  /** Resolves when nothing more is about to come. */
  readonly gathered: () => Promise<void>;
}

/** A call that runs long is on file by then; one that is short waits for the end of its own. */
const LATEST_MS = 5;
const IDLE_MS = 20;

/** Decides when what was counted in memory is written: together with what is about to come. */
export class WriteBehind {
  readonly #options: WriteBehindOptions;
  #batch: Batch | undefined;
  #changes = 0;
  #isGathering = false;
  #latest: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: WriteBehindOptions) {
    this.#options = options;
  }

  /** Something was counted in memory: settles when it is on file. */
  add(): Promise<readonly never[]> {
    this.#changes += 1;
    this.#batch ??= newBatch();
    this.#latest ??= setTimeout(() => this.flush(), LATEST_MS);
    return this.#batch.counted;
  }

  /** Whether somebody may wait for the next write. */
  get isAwaited(): boolean {
    return this.#batch !== undefined;
  }

  /** Somebody waits for it. */
  hurry(): void {
    if (this.#batch === undefined || this.#isGathering) return;
    this.#isGathering = true;
    setImmediate(() => void this.#gather());
  }

  /** Whether everything is on file now, or as safe as `write` makes it. */
  flush(write: () => void = this.#options.write): boolean {
    clearTimeout(this.#latest);
    this.#latest = undefined;
    this.#isGathering = false;
    const batch = this.#batch;
    this.#batch = undefined;
    try {
      write();
    } catch (error) {
      batch?.reject(error instanceof Error ? error : new Error(String(error)));
      return false;
    }
    batch?.resolve();
    return true;
  }

  /** From now on until `onIdle` this process counts alone. */
  watch(): void {
    let seen = this.#changes;
    let idleMs = 0;
    this.#idle ??= setInterval(() => {
      idleMs = seen === this.#changes ? idleMs + IDLE_MS : 0;
      seen = this.#changes;
      if (idleMs > 0) this.#options.onIdle(idleMs);
    }, IDLE_MS).unref();
  }

  stop(): void {
    clearTimeout(this.#latest);
    clearInterval(this.#idle);
    this.#latest = undefined;
    this.#idle = undefined;
    this.#isGathering = false;
  }

  async #gather(): Promise<void> {
    await this.#options.gathered();
    if (this.#isGathering) this.flush();
  }
}

function newBatch(): Batch {
  let resolve: () => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const counted = new Promise<readonly never[]>((yes, no) => {
    resolve = () => yes([]);
    reject = no;
  });
  // A call may end without anybody asking.
  counted.catch(() => undefined);
  return { counted, resolve, reject };
}
