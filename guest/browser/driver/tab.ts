import type { CDPSession, ConsoleMessage, Page, Request } from "playwright-core";
import { type Mishap, mishapOfRequest, mishapOfResponse, navigatingFrame } from "./navigation-failure.ts";

const ENTRIES_MAX = 200;
const ENTRY_CHARS_MAX = 500;
export const ERROR_PAGE = "chrome-error:";

/** One page of the browser, with what it said and what it failed to load. */
export class Tab {
  readonly number: number;
  readonly page: Page;
  readonly console = new LogRing(ENTRIES_MAX, ENTRY_CHARS_MAX);
  readonly requests = new LogRing(ENTRIES_MAX, ENTRY_CHARS_MAX);
  isCrashed = false;
  readonly #cdp: Promise<CDPSession>;
  #navigation: Request | undefined;
  #onNavigated: () => void = () => {};
  #mishap: Mishap | undefined;
  #isErrorPageDue = false;
  #onErrorPage: () => void = () => {};

  constructor(number: number, page: Page) {
    this.number = number;
    this.page = page;
    this.#cdp = page.context().newCDPSession(page);
    // A page that is gone before has no title, which is found out by whoever asks for it.
    this.#cdp.catch(() => {});
    page.on("console", (message) => this.console.add(describeMessage(message)));
    page.on("pageerror", (error) => this.console.add(`error: ${error.message}`));
    page.on("request", (request) => this.#onRequest(request));
    page.on("requestfailed", (request) => this.#onFailed(request));
    page.on("response", (response) => {
      const mishap = mishapOfResponse(response);
      if (mishap === undefined) return;
      if (mishap.request === this.#navigation) this.#mishap = mishap;
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

  /** As the browser knows it: the page itself may be busy with drawing, or for good. */
  async title(): Promise<string> {
    const cdp = await this.#cdp;
    const { targetInfo } = await cdp.send("Target.getTargetInfo");
    return isAddress(targetInfo.title, targetInfo.url) ? "" : targetInfo.title;
  }

  /** A page was asked for, and its server has not answered yet. */
  get isNavigating(): boolean {
    return this.#navigation !== undefined;
  }

  /** Resolves when the server's answer to a navigation that has begun is there, or the navigation has failed. */
  async navigated(): Promise<void> {
    if (this.#navigation === undefined) return;
    await new Promise<void>((resolve) => {
      this.#onNavigated = resolve;
    });
  }

  /** Resolves when the browser's own page about an address that failed is there; some failures have none. */
  async failed(): Promise<void> {
    await this.navigated();
    if (!this.#isErrorPageDue) return;
    await new Promise<void>((resolve) => {
      this.#onErrorPage = resolve;
    });
  }

  /** The page that was asked for last did not come, and nobody was told yet. */
  get mishap(): Mishap | undefined {
    return this.#mishap;
  }

  /** What went wrong before the tab was known. */
  begin(mishap: Mishap): void {
    this.#mishap = mishap;
  }

  /** Whoever tells it takes it, so that it is told once. */
  takeMishap(): Mishap | undefined {
    const mishap = this.#mishap;
    this.#mishap = undefined;
    return mishap;
  }

  /** The browser's own page about the last address can come when the next one has been asked for already. */
  #isLateErrorPage(url: string): boolean {
    return url.startsWith(ERROR_PAGE) && this.#navigation?.failure() === null;
  }

  #onRequest(request: Request): void {
    if (navigatingFrame(request) !== this.page.mainFrame()) return;
    this.#navigation = request;
    this.#mishap = undefined;
  }

  #onFailed(request: Request): void {
    this.requests.add(`${request.method()} ${request.url()}: ${request.failure()?.errorText ?? "failed"}`);
    if (request !== this.#navigation) return;
    // An answer without a page fails, too; it says more by itself.
    this.#mishap ??= mishapOfRequest(request);
    this.#isErrorPageDue = this.#mishap !== undefined;
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

/** The browser calls a page without a title by its address. */
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

/** The newest entries of something that never ends. */
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
