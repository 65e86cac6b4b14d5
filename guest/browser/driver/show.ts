import type { GuestParams, GuestResult } from "../../../contract/guest.ts";
import type { Page } from "playwright-core";
import { assertAllowedPage } from "./allowed-addresses.ts";
import type { BrowserSession } from "./session.ts";
import { within } from "./within.ts";

/** The quality of a picture for the dashboard. */
const JPEG_QUALITY = 55;
const TITLE_TIMEOUT_MS = 1000;
const TITLE_MAX = 300;
const URL_MAX = 2000;

/** A picture for the dashboard. It does not consume events of the next answer for the agent. */
export async function showPage(
  session: BrowserSession,
  { timeoutMs }: GuestParams["browser.picture"],
): Promise<GuestResult<"browser.picture">> {
  const tab = await session.tab();
  await assertAllowedPage(session, tab);
  const { page } = tab;
  const bytes = await page.screenshot({ type: "jpeg", quality: JPEG_QUALITY, timeout: timeoutMs, animations: "allow" });
  const title = await within(tab.title(), TITLE_TIMEOUT_MS).catch(() => "");
  const { width, height } = page.viewportSize() ?? { width: 0, height: 0 };
  const url = page.url().slice(0, URL_MAX);
  return { isRunning: true, url, title: title.slice(0, TITLE_MAX), width, height, data: bytes.toString("base64") };
}

/** Input of an operator on the picture. */
export async function takeInput(
  session: BrowserSession,
  params: GuestParams["browser.input"],
): Promise<Record<string, never>> {
  const tab = await session.tab();
  await assertAllowedPage(session, tab);
  await session.acting(async () => await give(tab.page, params));
  return {};
}

async function give(page: Page, { kind, x, y, text, amount, isUp }: GuestParams["browser.input"]): Promise<void> {
  switch (kind) {
    case "click":
      await page.mouse.click(x, y);
      return;
    case "type":
      await page.keyboard.insertText(text);
      return;
    case "key":
      await page.keyboard.press(text);
      return;
    case "scroll":
      await page.mouse.move(x, y);
      await page.mouse.wheel(0, isUp ? -amount : amount);
  }
}
