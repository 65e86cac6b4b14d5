import type { OwlError } from "../errors/owl-error.ts";
import type { RunWatch, Call } from "./call.ts";

/** Longer than a worker has before it is ended for a call: what stops when it should has one record, with all its costs. */
export const STOP_GRACE_MS = 1500;
/** What the server cannot end by force. After this its place is given back, and what was set aside for it is spent. */
export const LONGEST_RUN_ON_MS = 900_000;

/** In the record of a call that was stopped while its work went on. */
export const RUNS_ON_FLAG = "runs_on";

/** What runs for a call, from its begin to its own end: that may come long after the call's. */
export class WatchedRun implements RunWatch {
  #isRunning = false;
  #isLost = false;
  #stop: ((error: OwlError) => void) | undefined;
  /** Why it must not run any more, if it was to be stopped before it began. */
  #stopped: OwlError | undefined;
  #onEnd: (() => void) | undefined;

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Nobody knows what it charged at last. */
  get isLost(): boolean {
    return this.#isLost || this.#isRunning;
  }

  began(stop: (error: OwlError) => void): void {
    this.#stop = stop;
    this.#isRunning = true;
    if (this.#stopped !== undefined) stop(this.#stopped);
  }

  ended(): void {
    this.#isRunning = false;
    this.#onEnd?.();
  }

  lost(): void {
    this.#isLost = true;
  }

  stop(error: OwlError): void {
    this.#stopped ??= error;
    this.#stop?.(error);
  }

  /** @throws OwlError */
  assertNotStopped(): void {
    if (this.#stopped !== undefined) throw this.#stopped;
  }

  /** Resolves when it has ended, or when so much time is over. Whether it has ended. */
  endsWithin(waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), waitMs);
      // Who stops the server does not wait for what cannot be stopped.
      timer.unref();
      this.#onEnd = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      if (!this.#isRunning) this.#onEnd();
    });
  }
}

export interface Informed {
  /** The call, with a conversation that notices when the capability reports progress itself. */
  readonly call: Call;
  stop(): void;
}

/**
 * Tells the client that a long call is still alive, as long as the capability says nothing itself. Progress values
 * must rise, so ours count seconds and end with the first report of the capability's own.
 */
export function keepInformed(
  call: Call,
  { afterMs, what }: { readonly afterMs: number; readonly what: string },
): Informed {
  const startedAt = performance.now();
  const tick = (): void => {
    const seconds = (performance.now() - startedAt) / 1000;
    call.conversation.progress(seconds, { message: `${what} has been running for ${Math.round(seconds)} s` });
  };
  const timer = setInterval(tick, afterMs);
  timer.unref();
  const stop = (): void => clearInterval(timer);
  const conversation: Call["conversation"] = {
    ...call.conversation,
    progress(done, options) {
      stop();
      call.conversation.progress(done, options);
    },
  };
  return { call: { ...call, conversation }, stop };
}
