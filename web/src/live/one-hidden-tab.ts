const LOCK = "owlclaw-live";

/**
 * Keeps a stream open in every visible tab. A browser has only six connections per server, so only one of the hidden
 * tabs keeps its stream. Web Locks are missing on a page that was loaded over plain HTTP from another machine: there
 * all hidden tabs keep theirs.
 */
export function keepWhileWanted(open: () => () => void): () => void {
  let close: (() => void) | undefined;
  let leaveTurn: (() => void) | undefined;

  const start = (): void => {
    close ??= open();
  };
  const stop = (): void => {
    close?.();
    close = undefined;
  };
  const follow = (): void => {
    leaveTurn?.();
    leaveTurn = undefined;
    if (document.hidden && "locks" in navigator) leaveTurn = takeTurn(start, stop);
    else start();
  };
  follow();
  document.addEventListener("visibilitychange", follow);
  return () => {
    document.removeEventListener("visibilitychange", follow);
    leaveTurn?.();
    stop();
  };
}

/**
 * Keeps the stream open without a gap when the lock is free. Otherwise closes it and waits for the tab that holds the
 * lock.
 */
function takeTurn(start: () => void, stop: () => void): () => void {
  const leaving = new AbortController();
  const { signal } = leaving;
  const hold = (): Promise<void> => {
    if (!signal.aborted) start();
    return signal.aborted ? Promise.resolve() : aborted(signal);
  };
  const wait = async (): Promise<void> => {
    if (signal.aborted) return;
    stop();
    await navigator.locks.request(LOCK, { signal }, hold);
  };
  const isTaken = navigator.locks.request(LOCK, { ifAvailable: true }, async (lock) => {
    if (lock !== null) await hold();
    return lock === null;
  });
  // A tab that becomes visible again aborts its wait.
  isTaken.then((taken) => (taken ? wait() : undefined)).catch(() => undefined);
  return () => leaving.abort();
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
