import type { Browser, CDPSession } from "playwright-core";
import type { Workspace } from "../../paths.ts";
import { assertAllowed } from "./allowed-addresses.ts";

interface FileGuardOptions {
  readonly browser: Browser;
  readonly workspace: Workspace;
  readonly onRefused: (reason: string) => void;
}

/** Files that pages ask for, as pictures, scripts, styles or frames, are refused outside the workspace before they are read. */
export class FileGuard {
  readonly #options: FileGuardOptions;
  #watching: Promise<void> | undefined;

  constructor(options: FileGuardOptions) {
    this.#options = options;
  }

  /**
   * To be called before a file is opened as a page. The browser lets no page of a server ask for files, so that until then
   * there is nothing to watch, and no request waits for us.
   */
  async watch(): Promise<void> {
    this.#watching ??= this.#start();
    this.#watching.catch(() => (this.#watching = undefined));
    await this.#watching;
  }

  /** Of the browser as a whole: a tab or a frame of a page's own making is watched from its first request. */
  async #start(): Promise<void> {
    const cdp = await this.#options.browser.newBrowserCDPSession();
    cdp.on("Fetch.requestPaused", ({ requestId, request }) => void this.#answer(cdp, requestId, request.url));
    await cdp.send("Fetch.enable", { patterns: [{ urlPattern: "file://*" }] });
  }

  async #answer(cdp: CDPSession, requestId: string, url: string): Promise<void> {
    const answering = this.#isAllowed(url)
      ? cdp.send("Fetch.continueRequest", { requestId })
      : cdp.send("Fetch.failRequest", { requestId, errorReason: "AccessDenied" });
    // The page may be gone before it hears the answer.
    await answering.catch(() => {});
  }

  #isAllowed(url: string): boolean {
    try {
      assertAllowed(url, this.#options.workspace);
      return true;
    } catch (error) {
      this.#options.onRefused(error instanceof Error ? error.message : String(error));
      return false;
    }
  }
}
