import { setTimeout as delay } from "node:timers/promises";
import type { BrowserSession } from "./session.ts";
import type { Page } from "playwright-core";
import { Failure } from "../../failure.ts";

/** A click's consequences begin a moment later, if there are any. */
const BEGIN_MS = 60;
const LOAD_MAX_MS = 10_000;
/** A tab whose server takes longer is told of by the next call. */
const OPEN_MAX_MS = 5000;
/** A page that is well answers at once, on a machine that does much else in a second or two. */
const PING_MS = 5000;
const STOP_MS = 2000;
const GO_ON = "go on with browser_goto; a page that needs more memory needs a sandbox of a larger flavor";

/** Waits at most so long. What was waited for may still happen. */
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

/** Ends with the signal. What was waited for may still happen. */
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

/** Waits for what an action set off: a navigation, a new tab, a download. Not for pages that never come to rest. */
export async function settle(session: BrowserSession, signal: AbortSignal): Promise<void> {
  await delay(BEGIN_MS, undefined, { signal });
  await within(session.openingTabs.opened(), OPEN_MAX_MS).catch(() => {});
  const tab = await session.tab();
  const loaded = tab.navigated().then(() => tab.page.waitForLoadState("load", { timeout: LOAD_MAX_MS, signal }));
  // A page that loads for longer than this is described as it is.
  await within(loaded, LOAD_MAX_MS).catch(() => {});
  if (session.downloads.isBusy) await within(session.downloads.done(), LOAD_MAX_MS).catch(() => {});
}

/**
 * What came too late may be the fault of a page whose script never ends: that one answers nothing, whatever is asked. It
 * is closed, so that the next call works, and the caller is told that instead. Returns when the page is well.
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

/** Playwright waits with everything until a page that was asked for is there or has failed. */
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
