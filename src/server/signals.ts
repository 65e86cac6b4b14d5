const PARENT_POLL_MS = 1000;

/** Calls back once with the reason to stop; a second signal ends the process at once. */
export function onStopSignal(stop: (reason: string) => void): () => void {
  let received = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    received += 1;
    if (received > 1) process.exit(128 + (signal === "SIGINT" ? 2 : 15));
    stop(signal);
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  return () => void process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
}

/** A stdio server whose parent died without closing the pipe would live on with nobody to talk to. */
export function onParentDeath(stop: (reason: string) => void): () => void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid !== parent) stop("the parent process is gone");
  }, PARENT_POLL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
