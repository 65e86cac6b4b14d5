/** One call: `end` says that it has nothing more to bring. To be said once. */
export interface CallInFlight {
  end(): void;
}

/** Calls that began in the same moment and have not ended. */
class Moment implements CallInFlight {
  readonly startedMs: number;
  readonly #onOver: () => void;
  #running = 0;

  constructor(startedMs: number, onOver: () => void) {
    this.startedMs = startedMs;
    this.#onOver = onOver;
  }

  get isOver(): boolean {
    return this.#running === 0;
  }

  begin(): void {
    this.#running += 1;
  }

  end(): void {
    this.#running -= 1;
    if (this.isOver) this.#onOver();
  }
}

interface Waiter {
  readonly moments: readonly Moment[];
  readonly resolve: () => void;
  /** Ends its patience. */
  timer?: NodeJS.Timeout;
}

const MOMENT_MS = 1;
/** What takes longer is not worth waiting for. */
const YOUNG_MS = 5;
const MAX_WAIT_MS = 1;

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
    moment.begin();
    return moment;
  }

  /** Resolves when the calls of the last moments have ended, or a millisecond is over. */
  settled(): Promise<void> {
    const now = performance.now();
    const moments = this.#young(now);
    if (moments.length === 0) return Promise.resolve();
    // Whoever comes from now on belongs to another moment.
    this.#newMoment(now);
    return new Promise((resolve) => {
      const waiting: Waiter = { moments, resolve };
      this.#waiting = [...this.#waiting, waiting];
      waiting.timer = setTimeout(() => this.#release(waiting), MAX_WAIT_MS);
    });
  }

  #newMoment(now: number): Moment {
    const moment = new Moment(now, () => this.#wake());
    this.#moments = [...this.#young(now), moment];
    return moment;
  }

  #young(now: number): readonly Moment[] {
    return this.#moments.filter(({ isOver, startedMs }) => !isOver && now - startedMs < YOUNG_MS);
  }

  #wake(): void {
    for (const waiting of this.#waiting) {
      if (waiting.moments.every(({ isOver }) => isOver)) this.#release(waiting);
    }
  }

  #release(waiting: Waiter): void {
    // A timer that is left would wake the server for nothing.
    clearTimeout(waiting.timer);
    this.#waiting = this.#waiting.filter((one) => one !== waiting);
    waiting.resolve();
  }
}
