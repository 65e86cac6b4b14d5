import type { CDPSession, ConsoleMessage, Page, Request } from "playwright-core";
import { type LoadFailure, failureOfRequest, failureOfResponse, navigatingFrame } from "./navigation-failure.ts";

const ENTRIES_MAX = 200;
const ENTRY_CHARS_MAX = 500;
export const ERROR_PAGE = "chrome-error:";

/** One tab, with its console messages and failed requests. */
export class Tab {
  readonly number: number;
  readonly page: Page;
  readonly console = new LogRing(ENTRIES_MAX, ENTRY_CHARS_MAX);
  readonly requests = new LogRing(ENTRIES_MAX, ENTRY_CHARS_MAX);
  isCrashed = false;
  readonly #cdp: Promise<CDPSession>;
  #navigation: Request | undefined;
  #onNavigated: () => void = () => {};
  #loadFailure: LoadFailure | undefined;
  #isErrorPageDue = false;
  #onErrorPage: () => void = () => {};

  constructor(number: number, page: Page) {
    this.number = number;
    this.page = page;
    this.#cdp = page.context().newCDPSession(page);
    // A closed page has no title; the caller handles the rejection.
    this.#cdp.catch(() => {});
    page.on("console", (message) => this.console.add(describeMessage(message)));
    page.on("pageerror", (error) => this.console.add(`error: ${error.message}`));
    page.on("request", (request) => this.#onRequest(request));
    page.on("requestfailed", (request) => this.#onFailed(request));
    page.on("response", (response) => {
      const loadFailure = failureOfResponse(response);
      if (loadFailure === undefined) return;
      if (loadFailure.request === this.#navigation) this.#loadFailure = loadFailure;
      this.requests.add(
        `${response.request().method()} ${response.url()}: ${response.status()} ${response.statusText()}`,
      );
    });
    page.on("framenavigated", (frame) => {
      if (frame !== page.mainFrame()) return;
      if (!this.#isLateErrorPage(frame.url())) this.#endNavigation();
      this.#isErrorPageDue = false;
      this.#onErrorPage();
    });
    page.on("close", () => this.#endNavigation());
    page.on("crash", () => {
      this.isCrashed = true;
      this.#endNavigation();
    });
  }

  /** Asks the browser, because the page may be busy. */
  async title(): Promise<string> {
    const cdp = await this.#cdp;
    const { targetInfo } = await cdp.send("Target.getTargetInfo");
    return isAddress(targetInfo.title, targetInfo.url) ? "" : targetInfo.title;
  }

  /** A navigation has begun, and its server has not answered yet. */
  get isNavigating(): boolean {
    return this.#navigation !== undefined;
  }

  /** Resolves when the server has answered a navigation in progress, or it has failed. */
  async navigated(): Promise<void> {
    if (this.#navigation === undefined) return;
    await new Promise<void>((resolve) => {
      this.#onNavigated = resolve;
    });
  }

  /** Resolves when the browser's error page for a failed address has loaded; some failures have none. */
  async failed(): Promise<void> {
    await this.navigated();
    if (!this.#isErrorPageDue) return;
    await new Promise<void>((resolve) => {
      this.#onErrorPage = resolve;
    });
  }

  /** Whether the last requested page failed to load and no answer has reported it. */
  get loadFailure(): LoadFailure | undefined {
    return this.#loadFailure;
  }

  /** A failure from before the tab was known. */
  begin(loadFailure: LoadFailure): void {
    this.#loadFailure = loadFailure;
  }

  /** Returns and removes the failure, so that it is reported once. */
  takeLoadFailure(): LoadFailure | undefined {
    const loadFailure = this.#loadFailure;
    this.#loadFailure = undefined;
    return loadFailure;
  }

  /** The error page of the last address may load after the next navigation has begun. */
  #isLateErrorPage(url: string): boolean {
    return url.startsWith(ERROR_PAGE) && this.#navigation?.failure() === null;
  }

  #onRequest(request: Request): void {
    if (navigatingFrame(request) !== this.page.mainFrame()) return;
    this.#navigation = request;
    this.#loadFailure = undefined;
  }

  #onFailed(request: Request): void {
    this.requests.add(`${request.method()} ${request.url()}: ${request.failure()?.errorText ?? "failed"}`);
    if (request !== this.#navigation) return;
    // An answer without a page fails as well, with a better message.
    this.#loadFailure ??= failureOfRequest(request);
    this.#isErrorPageDue = this.#loadFailure !== undefined;
    this.#endNavigation();
  }

  #endNavigation(): void {
    this.#navigation = undefined;
    this.#onNavigated();
  }
}

function describeMessage(message: ConsoleMessage): string {
  const { url, lineNumber } = message.location();
  const place = url === "" ? "" : ` (${url}:${lineNumber + 1})`;
  return `${message.type()}: ${message.text()}${place}`;
}

/** For a page without a title the browser returns its address. */
function isAddress(title: string, url: string): boolean {
  const plain = (text: string): string => text.replace(/^[a-z]+:\/\//, "").replace(/\/$/, "");
  return plain(title) === plain(url) || plain(title) === plain(decodeSafely(url));
}

function decodeSafely(url: string): string {
  try {
    return decodeURI(url);
  } catch {
    // Not every percent sign is an escape.
    return url;
  }
}

/** Keeps the newest entries of an unbounded list. */
class LogRing {
  readonly #maxEntries: number;
  readonly #maxChars: number;
  #entries: string[] = [];
  #dropped = 0;

  constructor(maxEntries: number, maxChars: number) {
    this.#maxEntries = maxEntries;
    this.#maxChars = maxChars;
  }

  add(entry: string): void {
    this.#entries.push(entry.slice(0, this.#maxChars));
    if (this.#entries.length <= this.#maxEntries) return;
    this.#entries.shift();
    this.#dropped += 1;
  }

  newest(count: number): { readonly entries: readonly string[]; readonly dropped: number } {
    const left = Math.max(0, this.#entries.length - count);
    return { entries: this.#entries.slice(left), dropped: this.#dropped + left };
  }
}
