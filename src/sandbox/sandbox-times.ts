export interface SandboxTime {
  readonly template: string;
  /** It waited in the pool. */
  readonly isWarm: boolean;
  readonly durationMs: number;
}

/** Hears what callers waited for. */
export interface SandboxTimes {
  created(time: SandboxTime): void;
  /** With the time that the start took. */
  firstResult(time: SandboxTime): void;
}

/** Measures the start of one sandbox. */
export class StartClock {
  readonly #times: SandboxTimes | undefined;
  readonly #about: Omit<SandboxTime, "durationMs">;
  readonly #beganMs = performance.now();
  #startMs = 0;

  constructor(times: SandboxTimes | undefined, about: Omit<SandboxTime, "durationMs">) {
    this.#times = times;
    this.#about = about;
  }

  isReady(): void {
    this.#startMs = performance.now() - this.#beganMs;
    this.#times?.created({ ...this.#about, durationMs: this.#startMs });
  }

  firstResult(durationMs: number): void {
    this.#times?.firstResult({ ...this.#about, durationMs: this.#startMs + durationMs });
  }
}

/** Measures how long the first thing takes that is done in a sandbox. */
export class FirstResult {
  readonly #onResult: ((durationMs: number) => void) | undefined;
  #isThere = false;

  constructor(onResult: ((durationMs: number) => void) | undefined) {
    this.#onResult = onResult;
  }

  of<T>(work: () => Promise<T>): Promise<T> {
    return this.#isThere ? work() : this.#measure(work);
  }

  async #measure<T>(work: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    const result = await work();
    if (!this.#isThere) this.#onResult?.(performance.now() - startMs);
    this.#isThere = true;
    return result;
  }
}
