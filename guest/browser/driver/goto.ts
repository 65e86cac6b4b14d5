import type { Page, Response } from "playwright-core";
import { Failure } from "../../failure.ts";
import type { BrowserGotoParams, BrowserGotoResult, BrowserHistoryParams } from "../rpc.ts";
import { toAddress } from "./allowed-addresses.ts";
import { ASK_FOR_HOST, explainNavigation } from "./navigation-failure.ts";
import { refuseSickPage } from "./page-health.ts";
import type { BrowserSession } from "./session.ts";
import { settle } from "./settle.ts";
import { ERROR_PAGE } from "./tab.ts";
import { within } from "./within.ts";

const DOWNLOAD_MAX_MS = 30_000;

export async function goto(
  session: BrowserSession,
  { url, waitUntil, timeoutMs }: BrowserGotoParams,
  signal: AbortSignal,
): Promise<BrowserGotoResult> {
  const address = toAddress(url, session.workspace);
  const page = await session.page();
  try {
    return await withStatus(session, await open(page, address, { waitUntil, timeout: timeoutMs, signal }));
  } catch (error) {
    if (isDownload(error)) return await downloaded(session, signal);
    await refuseSickPage(session, error);
    await errorPageShown(page, error);
    throw await explainNavigation(error, { address, timeoutMs, proxyPort: session.proxyPort });
  }
}

type GotoOptions = Parameters<Page["goto"]>[1];

const ERROR_PAGE_MS = 1000;

/** The browser's own page about an address that failed comes late, and may get in the way of the next address. */
async function open(page: Page, address: string, options: GotoOptions): Promise<Response | null> {
  const wasFailed = page.url().startsWith(ERROR_PAGE);
  try {
    return await page.goto(address, options);
  } catch (error) {
    const isInterrupted = error instanceof Error && /interrupted by another navigation|ERR_ABORTED/.test(error.message);
    const isByErrorPage = isInterrupted && (wasFailed || error.message.includes(`"${ERROR_PAGE}`));
    if (isByErrorPage && !isDownload(error)) return await page.goto(address, options);
    throw error;
  }
}

async function errorPageShown(page: Page, error: unknown): Promise<void> {
  if (!(error instanceof Error) || !error.message.includes("net::ERR_")) return;
  const shown = page.waitForURL((url) => url.protocol === ERROR_PAGE, { timeout: ERROR_PAGE_MS, waitUntil: "commit" });
  // Some failures have no page.
  await shown.catch(() => {});
}

export async function goThroughHistory(
  session: BrowserSession,
  { action, timeoutMs }: BrowserHistoryParams,
  signal: AbortSignal,
): Promise<BrowserGotoResult> {
  const page = await session.page();
  const before = page.url();
  const options = { timeout: timeoutMs, signal, waitUntil: "load" } as const;
  try {
    if (action === "reload") return await withStatus(session, await page.reload(options));
    const response = action === "back" ? await page.goBack(options) : await page.goForward(options);
    if (response === null && page.url() === before) {
      throw new Failure("no_history", `there is no page to go ${action} to`, "use browser_goto with its address");
    }
    return await withStatus(session, response);
  } catch (error) {
    await refuseSickPage(session, error);
    throw await explainNavigation(error, { address: before, timeoutMs, proxyPort: session.proxyPort });
  }
}

/** The proxy's own answers look like a server's; they say who refused. */
async function withStatus(session: BrowserSession, response: Response | null): Promise<BrowserGotoResult> {
  const phrase = response?.statusText() ?? "";
  if (session.proxyPort !== undefined && phrase.startsWith("egress refused")) {
    throw new Failure("refused_by_policy", phrase, ASK_FOR_HOST);
  }
  const page = await session.describe();
  const isServed = response?.url().startsWith("http") === true;
  return isServed ? { ...page, status: response.status() } : page;
}

function isDownload(error: unknown): boolean {
  return error instanceof Error && error.message.includes("Download is starting");
}

async function downloaded(session: BrowserSession, signal: AbortSignal): Promise<BrowserGotoResult> {
  await settle(session, signal);
  await within(session.downloads.done(), DOWNLOAD_MAX_MS).catch(() => session.note("the download goes on"));
  return await session.describe();
}
