import type { CDPSession, ConsoleMessage, Page, Request } from "playwright-core";
import { LogRing } from "./log-ring.ts";

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
      if (response.status() < 400) return;
      this.requests.add(
        `${response.request().method()} ${response.url()}: ${response.status()} ${response.statusText()}`,
      );
    });
    page.on("framenavigated", (frame) => {
      if (frame === page.mainFrame() && !this.#isLateErrorPage(frame.url())) this.#endNavigation();
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

  /** The browser's own page about the last address can come when the next one has been asked for already. */
  #isLateErrorPage(url: string): boolean {
    return url.startsWith(ERROR_PAGE) && this.#navigation?.failure() === null;
  }

  #onRequest(request: Request): void {
    if (isMainNavigation(this.page, request)) this.#navigation = request;
  }

  #onFailed(request: Request): void {
    this.requests.add(`${request.method()} ${request.url()}: ${request.failure()?.errorText ?? "failed"}`);
    if (request === this.#navigation) this.#endNavigation();
  }

  #endNavigation(): void {
    this.#navigation = undefined;
    this.#onNavigated();
  }
}

function isMainNavigation(page: Page, request: Request): boolean {
  try {
    return request.isNavigationRequest() && request.frame() === page.mainFrame();
  } catch {
    // A request of a page that is not there yet, or of a worker, has no frame.
    return false;
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
