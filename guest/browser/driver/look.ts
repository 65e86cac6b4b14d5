import type { GuestParams, GuestResult } from "../../../contract/guest.ts";
import { Failure } from "../../failure.ts";
import { assertAllowedPage } from "./allowed-addresses.ts";
import { explainAction } from "./action-failure.ts";
import { locate } from "./locate.ts";
import { settle, isLate, refuseSickPage, DeadlineError, within } from "./within.ts";
import type { BrowserSession } from "./session.ts";
import { setTimeout as delay } from "node:timers/promises";
import type { Frame, Page } from "playwright-core";

const SCROLLS: Readonly<Record<GuestParams["browser.scroll"]["to"], string>> = {
  up: "scrollBy(0, -innerHeight * 0.9)",
  down: "scrollBy(0, innerHeight * 0.9)",
  top: "scrollTo(0, 0)",
  bottom: "scrollTo(0, document.documentElement?.scrollHeight ?? 0)",
};
const LOOK_EVERY_MS = 100;
/** A frame that does not answer must not delay the others. */
const FRAME_MS = 1000;

export async function scroll(
  session: BrowserSession,
  { to, selector, timeoutMs }: GuestParams["browser.scroll"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  if (selector === undefined) await (await session.page()).evaluate(SCROLLS[to]);
  else {
    try {
      await (await locate(session, selector)).locator.scrollIntoViewIfNeeded({ timeout: timeoutMs, signal });
    } catch (error) {
      await refuseSickPage(session, error);
      throw explainAction(error, { selector, timeoutMs });
    }
  }
  await settle(session, signal);
  return await session.describe();
}

export async function waitForText(
  session: BrowserSession,
  { text, state, timeoutMs }: GuestParams["browser.wait"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.click">> {
  const page = await session.page();
  try {
    await waitInFrames(page, { text, isGone: state === "gone", timeoutMs, signal });
  } catch (error) {
    await refuseSickPage(session, error);
    if (!isLate(error)) throw error;
    const said = state === "gone" ? "is still there" : "did not appear";
    throw new Failure(
      "timeout",
      `the text ${JSON.stringify(text)} ${said} in ${timeoutMs / 1000} s`,
      "call browser_snapshot to see the page as it is",
    );
  }
  return await session.describe();
}

/** Runs in the page's world, like a script of the page. */
export async function evaluate(
  session: BrowserSession,
  { expression, maxChars }: GuestParams["browser.evaluate"],
): Promise<GuestResult<"browser.evaluate">> {
  const tab = await session.tab();
  await assertAllowedPage(session, tab);
  let value: unknown;
  try {
    value = await tab.page.evaluate(expression);
  } catch (error) {
    const said = error instanceof Error ? error.message.replace(/^page\.evaluate: /, "") : String(error);
    throw new Failure(
      "script_error",
      said.slice(0, 1000),
      "correct the expression; it runs in the page, with its document and window",
    );
  }
  const json = toJson(value);
  const isTruncated = json.length > maxChars;
  return { ...(await session.describe()), value: json.slice(0, maxChars), isTruncated };
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch (error) {
    const said = error instanceof Error ? error.message.split("\n", 1)[0] : String(error);
    throw new Failure(
      "script_error",
      `the value has no form in JSON: ${said}`,
      "let the expression return text, as in String(value), or only those parts of the value that are needed",
    );
  }
}

export async function readLog(
  session: BrowserSession,
  { kind, maxEntries }: GuestParams["browser.log"],
): Promise<GuestResult<"browser.log">> {
  const tab = await session.tab();
  const { entries, dropped } = tab[kind].newest(maxEntries);
  return { ...(await session.describe()), entries, droppedEntries: dropped };
}

export async function useTabs(
  session: BrowserSession,
  { action, tab: number }: GuestParams["browser.tabs"],
): Promise<GuestResult<"browser.click">> {
  if (action === "open") await session.open();
  if (action === "select" || action === "close") {
    const tab =
      session.tabs.find((candidate) => candidate.number === number) ??
      (number === undefined ? await session.tab() : undefined);
    if (tab === undefined) {
      const known = session.tabs.map((candidate) => candidate.number).join(", ");
      throw new Failure("no_such_tab", `there is no tab ${number}`, `the tabs are: ${known}`);
    }
    if (action === "close") await session.close(tab);
    else session.select(tab);
  }
  return await session.describe();
}

interface TextWait {
  readonly text: string;
  readonly isGone: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Waits until one of the page's frames shows a text, or none does. */
async function waitInFrames(page: Page, { text, isGone, timeoutMs, signal }: TextWait): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const looks = page.frames().map(async (frame) => await isSeen(frame, text, isGone));
    const isThere = (await Promise.all(looks)).includes(true);
    if (isThere !== isGone) return;
    if (performance.now() > endMs) throw new DeadlineError(timeoutMs);
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** `otherwise`: the result for a frame that does not answer. */
async function isSeen(frame: Frame, text: string, otherwise: boolean): Promise<boolean> {
  try {
    return await within(shows(frame, text), FRAME_MS);
  } catch (error) {
    // A frame that was removed shows no text.
    return error instanceof DeadlineError && otherwise;
  }
}

async function shows(frame: Frame, text: string): Promise<boolean> {
  if ((await frame.getByText(text).filter({ visible: true }).count()) === 0) return false;
  for (let inner = frame, outer = frame.parentFrame(); outer !== null; inner = outer, outer = outer.parentFrame()) {
    if (!(await (await inner.frameElement()).isVisible())) return false;
  }
  return true;
}
