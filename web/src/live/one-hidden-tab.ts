const LOCK = "owlclaw-live";

/**
 * Opens what every tab in sight needs. A browser has only six connections for one server, so of the tabs out of sight one at a time
 * keeps it. Locks are missing where the page came over plain HTTP from another machine: there all of them do.
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

/** Goes on without a gap where the turn is free; otherwise it waits for the tab that has it. */
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
  // Whoever is back in sight before the turn came waits no longer.
  isTaken.then((taken) => (taken ? wait() : undefined)).catch(() => undefined);
  return () => leaving.abort();
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
