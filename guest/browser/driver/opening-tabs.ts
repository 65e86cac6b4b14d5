import type { BrowserContext, Page } from "playwright-core";
import { type Mishap, mishapOfRequest, mishapOfResponse, navigatingFrame } from "./navigation-failure.ts";

/** Tabs that pages open: one is known only when its first page has come or failed, and until then by its requests alone. */
export class OpeningTabs {
  #isOpening = false;
  #mishaps: Mishap[] = [];
  #onOpened: () => void = () => {};

  constructor(context: BrowserContext) {
    context.on("request", (request) => {
      if (request.isNavigationRequest() && navigatingFrame(request) === undefined) this.#isOpening = true;
    });
    context.on("requestfailed", (request) => {
      const mishap = mishapOfRequest(request);
      if (mishap !== undefined) this.#keep(mishap);
      // A download needs no tab.
      else if (request.isNavigationRequest() && navigatingFrame(request) === undefined) this.#end();
    });
    context.on("response", (response) => {
      const mishap = mishapOfResponse(response);
      if (mishap !== undefined) this.#keep(mishap);
    });
  }

  /** Resolves when a tab that was on its way is known. */
  async opened(): Promise<void> {
    if (!this.#isOpening) return;
    await new Promise<void>((resolve) => {
      this.#onOpened = resolve;
    });
  }

  /** The tab is known now: what went wrong with its first page. */
  take(page: Page): Mishap | undefined {
    const mishap = this.#mishaps.find(({ request }) => navigatingFrame(request) === page.mainFrame());
    this.#end();
    return mishap;
  }

  #keep(mishap: Mishap): void {
    const { request } = mishap;
    if (request.isNavigationRequest() && navigatingFrame(request) === undefined) this.#mishaps.push(mishap);
  }

  #end(): void {
    this.#isOpening = false;
    this.#mishaps = [];
    this.#onOpened();
  }
}
