/** One call in flight. Call `end` once, when it writes nothing more. */
export interface CallInFlight {
  end(): void;
}

/** The calls that began within the same millisecond and have not ended. */
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
  /** Ends the wait after `MAX_WAIT_MS`. */
  timer?: NodeJS.Timeout;
}

const MOMENT_MS = 1;
/** Older calls are not waited for. */
const YOUNG_MS = 5;
const MAX_WAIT_MS = 1;

/**
 * Knows which calls are likely to end soon. A write for one call alone costs a hundred times as much as its share of a
 * batch, so the writer waits for the calls in flight that are younger than `YOUNG_MS`, and not for calls that begin
 * later.
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

  /** Resolves when the recent calls have ended, or after `MAX_WAIT_MS`. */
  settled(): Promise<void> {
    const now = performance.now();
    const moments = this.#young(now);
    if (moments.length === 0) return Promise.resolve();
    // Calls that begin from now on are counted in a new moment.
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
    // A remaining timer would wake the event loop for nothing.
    clearTimeout(waiting.timer);
    this.#waiting = this.#waiting.filter((one) => one !== waiting);
    waiting.resolve();
  }
}
