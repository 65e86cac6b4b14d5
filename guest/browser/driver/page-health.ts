import type { Page } from "playwright-core";
import { Failure } from "../../failure.ts";
import type { BrowserSession } from "./session.ts";
import { DeadlineError, within } from "./within.ts";

/** A page that is well answers at once, on a machine that does much else in a second or two. */
const PING_MS = 5000;
const STOP_MS = 2000;
const GO_ON = "go on with browser_goto; a page that needs more memory needs a sandbox of a larger flavor";

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
