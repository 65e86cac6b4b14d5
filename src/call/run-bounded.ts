import { MAX_TIMER_MS } from "../config/value-rules.ts";
import { OwlError, toOwlError } from "../errors/owl-error.ts";
import { CallSuspended, type RunWatch } from "./call.ts";
import { Lifeline } from "./lifeline.ts";

export interface Bounds {
  /** What runs, for the messages: `tool "echo"`. */
  readonly what: string;
  readonly timeoutMs: number;
  /** The setting that the timeout comes from. Default: the configuration. */
  readonly timeoutSetBy?: string | undefined;
  readonly life: Lifeline;
  readonly watch?: RunWatch | undefined;
}

/**
 * Runs a capability until it settles, times out or its call is cancelled, whichever comes first. Its signal notifies
 * the capability of the end. The caller does not wait for its reaction.
 */
export function runBounded<T>(run: (life: Lifeline) => T | Promise<T>, bounds: Bounds): Promise<T> {
  const { what, timeoutMs, life } = bounds;
  if (life.isOver) return Promise.reject(cancelled(what));
  return new Promise<T>((resolve, reject) => {
    const own = new Lifeline();
    const stop = (error: OwlError): void => {
      own.end(error);
      reject(error);
    };
    const timer = setTimeout(() => stop(timedOut(bounds)), Math.min(timeoutMs, MAX_TIMER_MS));
    const unlink = life.onEnd(() => stop(cancelled(what)));
    bounds.watch?.began(stop);
    const release = (): void => {
      own.settle();
      bounds.watch?.ended();
      clearTimeout(timer);
      unlink();
    };
    start(run, own).then(
      (value) => {
        release();
        resolve(value);
      },
      (thrown: unknown) => {
        release();
        reject(executionError(thrown));
      },
    );
  });
}

async function start<T>(run: (life: Lifeline) => T | Promise<T>, life: Lifeline): Promise<T> {
  return run(life);
}

function executionError(thrown: unknown): Error {
  if (thrown instanceof CallSuspended) return thrown;
  return toOwlError(thrown, "execution_error");
}

function timedOut({ what, timeoutMs, timeoutSetBy }: Bounds): OwlError {
  return new OwlError("timeout", `${what} did not finish within ${timeoutMs / 1000} s and was stopped`, {
    facts: { timeout_ms: timeoutMs },
    ...(timeoutSetBy !== undefined && { hint: `Ask for less at once, or raise ${timeoutSetBy}.` }),
  });
}

function cancelled(what: string): OwlError {
  return new OwlError("cancelled", `${what} was cancelled`);
}
