export interface SandboxTime {
  readonly template: string;
  /** It was taken from the warm pool. */
  readonly isWarm: boolean;
  readonly durationMs: number;
}

/** Receives how long callers waited. */
export interface SandboxTimes {
  created(time: SandboxTime): void;
  /** Including the time of the start. */
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

/** Measures the first successful request in a sandbox. */
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
