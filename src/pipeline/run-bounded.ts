import { OwlError, toOwlError } from "../errors/owl-error.ts";
import { CallSuspended } from "./call.ts";

export interface Bounds {
  /** What runs, for the messages: `tool "echo"`. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Runs a capability until it settles, its time is up or its caller is gone, whichever comes first. The capability
 * learns of the end through its signal; whether it listens or not, the caller does not wait for it any longer.
 */
export function runBounded<T>(
  run: (signal: AbortSignal) => T | Promise<T>,
  { what, timeoutMs, signal }: Bounds,
): Promise<T> {
  if (signal.aborted) return Promise.reject(cancelled(what));
  return new Promise<T>((resolve, reject) => {
    const controller = new AbortController();
    const stop = (error: OwlError): void => {
      controller.abort(error);
      reject(error);
    };
    const onAbort = (): void => stop(cancelled(what));
    const timer = setTimeout(() => stop(timedOut(what, timeoutMs)), timeoutMs);
    const release = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    start(run, controller.signal)
      .then(resolve, (thrown: unknown) => reject(executionError(thrown)))
      .finally(release);
  });
}

async function start<T>(run: (signal: AbortSignal) => T | Promise<T>, signal: AbortSignal): Promise<T> {
  return run(signal);
}

function executionError(thrown: unknown): Error {
  if (thrown instanceof CallSuspended) return thrown;
  return toOwlError(thrown, "execution_error");
}

function timedOut(what: string, timeoutMs: number): OwlError {
  return new OwlError("timeout", `${what} did not finish within ${timeoutMs / 1000} s and was stopped`, {
    facts: { timeout_ms: timeoutMs },
  });
}

function cancelled(what: string): OwlError {
  return new OwlError("cancelled", `${what} was cancelled`);
}
