/** Calls that began in the same moment and have not ended. */
interface Moment {
  readonly startedMs: number;
  running: number;
}

interface Waiter {
  readonly moments: readonly Moment[];
  readonly resolve: () => void;
}

const MOMENT_MS = 1;
/** What takes longer is not worth waiting for. */
const YOUNG_MS = 5;
const MAX_WAIT_MS = 1;

/** One call: `end` says that it has nothing more to bring. */
export interface CallInFlight {
  end(): void;
}

/**
 * Knows which calls are about to end. Whatever is written for every call costs a hundred times as much alone as with
 * others: who writes waits for those that are on their way already, and for nobody who comes later.
 */
export class CallsInFlight {
  #moments: readonly Moment[] = [];
  #waiting: readonly Waiter[] = [];

  begin(): CallInFlight {
    const now = performance.now();
    const last = this.#moments.at(-1);
    const moment = last !== undefined && now - last.startedMs < MOMENT_MS ? last : this.#newMoment(now);
    moment.running += 1;
    return {
      end: () => {
        moment.running -= 1;
        if (moment.running === 0) this.#wake();
      },
    };
  }

  /** Resolves when the calls of the last moments have ended, or a millisecond is over. */
  settled(): Promise<void> {
    const now = performance.now();
    const moments = this.#young(now);
    if (moments.length === 0) return Promise.resolve();
    // Whoever comes from now on belongs to another moment.
    this.#newMoment(now);
    return new Promise((resolve) => {
      const waiting = { moments, resolve };
      this.#waiting = [...this.#waiting, waiting];
      setTimeout(() => this.#release(waiting), MAX_WAIT_MS);
    });
  }

  #newMoment(now: number): Moment {
    const moment = { startedMs: now, running: 0 };
    this.#moments = [...this.#young(now), moment];
    return moment;
  }

  #young(now: number): readonly Moment[] {
    return this.#moments.filter(({ running, startedMs }) => running > 0 && now - startedMs < YOUNG_MS);
  }

  #wake(): void {
    for (const waiting of this.#waiting) {
      if (waiting.moments.every(({ running }) => running === 0)) this.#release(waiting);
    }
  }

  #release(waiting: Waiter): void {
    this.#waiting = this.#waiting.filter((one) => one !== waiting);
    waiting.resolve();
  }
}
