import { setTimeout as delay } from "node:timers/promises";
import type { BrowserSession } from "./session.ts";
import type { Page } from "playwright-core";
import { Failure } from "../../failure.ts";

/** Effects of a click begin within this time. */
const BEGIN_MS = 60;
const LOAD_MAX_MS = 10_000;
/** A tab whose server takes longer is reported by the next answer. */
const OPEN_MAX_MS = 5000;
/** A responsive page answers within this time also on a busy machine. */
const PING_MS = 5000;
const STOP_MS = 2000;
const GO_ON = "go on with browser_goto; a page that needs more memory needs a sandbox of a larger flavor";

/** Waits at most this long. The work itself is not aborted. */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(timeoutMs)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export class DeadlineError extends Error {
  constructor(timeoutMs: number) {
    super(`nothing came of it in ${timeoutMs} ms`);
    this.name = "DeadlineError";
  }
}

/** Rejects when the signal aborts. The work itself is not aborted. */
export async function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw toError(signal.reason);
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(toError(signal.reason));
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

/** Waits for the effects of an action: a navigation, a new tab, a download. It does not wait for all network traffic to end. */
export async function settle(session: BrowserSession, signal: AbortSignal): Promise<void> {
  await delay(BEGIN_MS, undefined, { signal });
  await within(session.openingTabs.opened(), OPEN_MAX_MS).catch(() => {});
  const tab = await session.tab();
  const loaded = tab.navigated().then(() => tab.page.waitForLoadState("load", { timeout: LOAD_MAX_MS, signal }));
  // A page that loads longer than this is described in its current state.
  await within(loaded, LOAD_MAX_MS).catch(() => {});
  if (session.downloads.isBusy) await within(session.downloads.done(), LOAD_MAX_MS).catch(() => {});
}

/**
 * After a time-out, the page may have a script that never ends and answer nothing. It is closed, so that the next call works, and
 * this is reported. Returns when the page is responsive.
 */
export async function refuseSickPage(session: BrowserSession, error: unknown): Promise<void> {
  if (isCrash(error)) throw new Failure("page_crashed", "the page crashed and was closed", GO_ON);
  if (!isLate(error)) return;
  const tab = await session.tab();
  if (tab.isNavigating) await within(stopLoading(session, tab.page), STOP_MS).catch(() => {});
  const isWell = await within(tab.page.evaluate("1"), PING_MS).then(
    () => true,
    () => false,
  );
  if (isWell) return;
  await session.close(tab);
  throw new Failure("page_hung", "the page does not answer, since its script never ends; it was closed", GO_ON);
}

/** Playwright blocks all requests until a requested page has loaded or failed. */
async function stopLoading(session: BrowserSession, page: Page): Promise<void> {
  const cdp = await session.context.newCDPSession(page);
  await cdp.send("Page.stopLoading");
  await cdp.detach();
}

export function isLate(error: unknown): boolean {
  return error instanceof DeadlineError || (error instanceof Error && error.name === "TimeoutError");
}

function isCrash(error: unknown): boolean {
  return error instanceof Error && /Page crashed|Target crashed/.test(error.message);
}
