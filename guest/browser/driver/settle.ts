import { setTimeout as delay } from "node:timers/promises";
import type { BrowserSession } from "./session.ts";
import { within } from "./within.ts";

/** A click's consequences begin a moment later, if there are any. */
const BEGIN_MS = 60;
const LOAD_MAX_MS = 10_000;
/** A tab whose server takes longer is told of by the next call. */
const OPEN_MAX_MS = 5000;

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
