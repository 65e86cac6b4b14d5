const FIRST_PAUSE_MS = 100;
/** Handlers that end their process when they are called: everybody else's calls wait this long at most. */
const LONGEST_AFTER_CRASH_MS = 1000;
/** A process that cannot even start will hardly do so the next time. */
const LONGEST_AFTER_FAILED_START_MS = 10_000;
/** A worker that lived this long did not fail because of its start. */
const STEADY_MS = 10_000;

export interface EndedWorker {
  readonly livedMs: number;
  /** Whether it ever took calls. */
  readonly wasReady: boolean;
  /** The server ended it, since a call did not stop when it should. */
  readonly isForCall: boolean;
}

/** How long the next worker waits before it starts, so that workers which keep ending do not keep the machine busy. */
export class RestartPause {
  #pauseMs = 0;
  #endedAtMs = 0;

  /** The pause that follows. A call that took too long says nothing against its process: there is none after it. */
  ended({ livedMs, wasReady, isForCall }: EndedWorker, nowMs: number = performance.now()): number {
    if (isForCall && wasReady) return this.leftMs(nowMs);
    const longestMs = wasReady ? LONGEST_AFTER_CRASH_MS : LONGEST_AFTER_FAILED_START_MS;
    const isSteady = wasReady && livedMs > STEADY_MS;
    this.#pauseMs = isSteady ? 0 : Math.min(longestMs, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
    this.#endedAtMs = nowMs;
    return this.#pauseMs;
  }

  /** What is left of it: it counts from the end of the last worker, whenever the next is needed. */
  leftMs(nowMs: number = performance.now()): number {
    if (nowMs - this.#endedAtMs > STEADY_MS) this.#pauseMs = 0;
    return Math.max(0, this.#endedAtMs + this.#pauseMs - nowMs);
  }
}
