import type { OwlError } from "../errors/owl-error.ts";
import type { RunWatch, Call } from "./call.ts";

/**
 * Longer than a worker has before it is killed for a call, so that a run that stops in time has one record with all its
 * costs.
 */
export const STOP_GRACE_MS = 1500;
/**
 * The limit for runs that the server cannot kill. After it, what the call holds is released, and the reserved cost is
 * charged.
 */
export const LONGEST_RUN_ON_MS = 900_000;

/** Marks the row of a call that was stopped while its work continued. */
export const RUNS_ON_FLAG = "runs_on";

/** The run of a call, from its begin to its own end, which may be long after the end of the call. */
export class WatchedRun implements RunWatch {
  #isRunning = false;
  #isLost = false;
  #stop: ((error: OwlError) => void) | undefined;
  /** Set when the call was stopped, also before the run began. */
  #stopped: OwlError | undefined;
  #onEnd: (() => void) | undefined;

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Whether its last charges are unknown. */
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

  /** Waits at most this long for the end of the run. Resolves with whether it has ended. */
  endsWithin(waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), waitMs);
      // The timer does not keep the process alive: a stopping server does not wait for runs that cannot be stopped.
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
 * Notifies the client that a long call is still running, until the capability reports progress itself. Progress values
 * must rise, so these count seconds and end with the first report of the capability.
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
