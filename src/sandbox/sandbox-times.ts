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
