import type { BrowserContext, Page } from "playwright-core";
import { type LoadFailure, failureOfRequest, failureOfResponse, navigatingFrame } from "./navigation-failure.ts";

/** Tabs that pages open. A tab is known only when its first page has loaded or failed; before, only its requests are known. */
export class OpeningTabs {
  #isOpening = false;
  #loadFailures: LoadFailure[] = [];
  #onOpened: () => void = () => {};

  constructor(context: BrowserContext) {
    context.on("request", (request) => {
      if (request.isNavigationRequest() && navigatingFrame(request) === undefined) this.#isOpening = true;
    });
    context.on("requestfailed", (request) => {
      const loadFailure = failureOfRequest(request);
      if (loadFailure !== undefined) this.#keep(loadFailure);
      // A download opens no tab.
      else if (request.isNavigationRequest() && navigatingFrame(request) === undefined) this.#end();
    });
    context.on("response", (response) => {
      const loadFailure = failureOfResponse(response);
      if (loadFailure !== undefined) this.#keep(loadFailure);
    });
  }

  /** Resolves when a tab that was opening is known. */
  async opened(): Promise<void> {
    if (!this.#isOpening) return;
    await new Promise<void>((resolve) => {
      this.#onOpened = resolve;
    });
  }

  /** The tab is known: returns the failure of its first page. */
  take(page: Page): LoadFailure | undefined {
    const loadFailure = this.#loadFailures.find(({ request }) => navigatingFrame(request) === page.mainFrame());
    this.#end();
    return loadFailure;
  }

  #keep(loadFailure: LoadFailure): void {
    const { request } = loadFailure;
    if (request.isNavigationRequest() && navigatingFrame(request) === undefined) this.#loadFailures.push(loadFailure);
  }

  #end(): void {
    this.#isOpening = false;
    this.#loadFailures = [];
    this.#onOpened();
  }
}
