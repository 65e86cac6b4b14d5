import type { GuestParams, GuestResult } from "../../../contract/guest.ts";
import type { Page, Response } from "playwright-core";
import { Failure } from "../../failure.ts";
import { toAddress } from "./allowed-addresses.ts";
import { explainNavigation, explainProxyAnswer } from "./navigation-failure.ts";
import { within, settle, refuseSickPage } from "./within.ts";
import type { BrowserSession } from "./session.ts";
import { ERROR_PAGE, type Tab } from "./tab.ts";

const DOWNLOAD_MAX_MS = 30_000;
const ERROR_PAGE_MS = 1000;

export async function goto(
  session: BrowserSession,
  { url, waitUntil, timeoutMs }: GuestParams["browser.goto"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.goto">> {
  const address = toAddress(url, session.workspace);
  if (address.startsWith("file:")) await session.files.watch();
  const tab = await session.tab();
  tab.takeLoadFailure();
  try {
    return await withStatus(session, tab, await open(tab.page, address, { waitUntil, timeout: timeoutMs, signal }));
  } catch (error) {
    if (isDownload(error)) return await downloaded(session, signal);
    throw await explain(session, error, { tab, address, timeoutMs });
  }
}

interface RequestedPage {
  readonly tab: Tab;
  readonly address: string;
  readonly timeoutMs: number;
}

/** After a redirect the failed address may differ from the requested one. */
async function explain(
  session: BrowserSession,
  error: unknown,
  { tab, address, timeoutMs }: RequestedPage,
): Promise<unknown> {
  await refuseSickPage(session, error);
  // Some failures have no error page.
  await within(tab.failed(), ERROR_PAGE_MS).catch(() => {});
  const failed = tab.takeLoadFailure()?.request.url() ?? address;
  return await explainNavigation(error, { address: failed, timeoutMs, proxyPort: session.proxyPort });
}

type GotoOptions = Parameters<Page["goto"]>[1];

/** The browser's error page appears late and may interrupt the next navigation. */
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

export async function goThroughHistory(
  session: BrowserSession,
  { action, timeoutMs }: GuestParams["browser.history"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.goto">> {
  const tab = await session.tab();
  tab.takeLoadFailure();
  const { page } = tab;
  const before = page.url();
  const options = { timeout: timeoutMs, signal, waitUntil: "load" } as const;
  try {
    if (action === "reload") return await withStatus(session, tab, await page.reload(options));
    const response = action === "back" ? await page.goBack(options) : await page.goForward(options);
    if (response === null && page.url() === before) {
      throw new Failure("no_history", `there is no page to go ${action} to`, "use browser_goto with its address");
    }
    return await withStatus(session, tab, response);
  } catch (error) {
    throw await explain(session, error, { tab, address: before, timeoutMs });
  }
}

async function withStatus(
  session: BrowserSession,
  tab: Tab,
  response: Response | null,
): Promise<GuestResult<"browser.goto">> {
  // The result already reports it.
  if (tab.loadFailure?.request === response?.request()) tab.takeLoadFailure();
  const failure = explainProxyAnswer(response?.statusText() ?? "", session.proxyPort);
  if (failure !== undefined) throw failure;
  const page = await session.describe();
  const isServed = response?.url().startsWith("http") === true;
  return isServed ? { ...page, status: response.status() } : page;
}

function isDownload(error: unknown): boolean {
  return error instanceof Error && error.message.includes("Download is starting");
}

async function downloaded(session: BrowserSession, signal: AbortSignal): Promise<GuestResult<"browser.goto">> {
  await settle(session, signal);
  await within(session.downloads.done(), DOWNLOAD_MAX_MS).catch(() => session.note("the download goes on"));
  return await session.describe();
}
