import { constants } from "node:os";
import { isatty } from "node:tty";
import type { Logger } from "../telemetry/logger.ts";

const PARENT_POLL_MS = 1000;

/** Calls back once with the reason to stop; a second signal ends the process at once. */
export function onStopSignal(stop: (reason: string) => void): () => void {
  let received = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    received += 1;
    if (received > 1) dieOf(signal);
    stop(signal);
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  return () => void process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
}

/**
 * As if nobody had listened. An exit of Node's own stops threads first, and one of them may be in the middle of the
 * database's library, which cannot bear that.
 */
function dieOf(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // The first process of a container does not die of signals.
  process.exit(128 + constants.signals[signal]);
}

export interface ReloadSignal {
  /** Calls back when the operator wants files read again, also for a signal that came before. */
  follow(reload: () => void, stop: (reason: string) => void): void;
  off(): void;
}

/**
 * SIGHUP during start is remembered: the reload handler is not installed yet, and the default action would end the process. At a terminal the signal
 * means that it was closed, and ends the server; one that starts ends as if nobody had listened.
 */
export function hearReloadSignal(): ReloadSignal {
  // Asked now: a terminal that was closed is none any more.
  const isAtTerminal = isatty(0);
  let isWished = false;
  let act = (): void => {
    if (isAtTerminal) dieOf("SIGHUP");
    isWished = true;
  };
  const onSignal = (): void => act();
  process.on("SIGHUP", onSignal);
  return {
    follow(reload, stop) {
      act = isAtTerminal ? () => stop("the terminal was closed") : reload;
      if (isWished) act();
    },
    off: () => void process.off("SIGHUP", onSignal),
  };
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

/**
 * A promise that fails with nobody looking harms only whoever made it: it is logged, and the server goes on. An exception
 * that nobody caught may have left anything half done: the server stops, cleanly if it can.
 */
export function onStrayErrors(logger: Logger, stop: (reason: string) => void): () => void {
  const onRejection = (error: unknown): void => logger.error("a promise failed and nobody was looking", { error });
  const onException = (error: unknown): void => {
    logger.error("an exception was not caught, stopping", { error });
    stop("an exception was not caught");
  };
  process.on("unhandledRejection", onRejection).on("uncaughtException", onException);
  return () => void process.off("unhandledRejection", onRejection).off("uncaughtException", onException);
}
