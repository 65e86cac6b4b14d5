import type { Browser, BrowserContext, Dialog, Page } from "playwright-core";
import type { Workspace } from "../../paths.ts";
import type { BrowserPage, BrowserTab } from "../rpc.ts";
import { assertAllowedPage } from "./allowed-addresses.ts";
import { startChromium, type ChromiumOptions } from "./chromium.ts";
import { Downloads } from "./downloads.ts";
import { FileGuard } from "./file-guard.ts";
import { describeMishap } from "./mishap.ts";
import { OpeningTabs } from "./opening-tabs.ts";
import { RefTable } from "./ref-table.ts";
import { SnapshotPages } from "./snapshot-pages.ts";
import { Tab } from "./tab.ts";
import { within } from "./within.ts";

const TABS_MAX = 20;
const EVENTS_MAX = 50;
const TITLE_TIMEOUT_MS = 5000;
const CLOSE_TIMEOUT_MS = 2000;
const TEXT_MAX = 300;
/** An address, what went wrong with it, and what to do. */
const EVENT_MAX = 1000;

export interface SessionOptions {
  readonly chromium: ChromiumOptions;
  readonly workspace: Workspace;
  /** The browser is gone, and with it everything here. */
  readonly onGone: () => void;
}

/** One running browser: its tabs, and what happened in them since somebody last asked. */
export class BrowserSession {
  readonly workspace: Workspace;
  readonly proxyPort: number | undefined;
  readonly refs = new RefTable();
  readonly snapshots = new SnapshotPages();
  readonly downloads: Downloads;
  readonly files: FileGuard;
  readonly openingTabs: OpeningTabs;
  readonly #context: BrowserContext;
  readonly #tabs: Tab[] = [];
  #current: Tab | undefined;
  #lastTab = 0;
  #lastPicture = 0;
  #events: string[] = [];
  /** How questions of pages are answered while a call says so. */
  acceptsDialogs = false;

  private constructor(options: SessionOptions, browser: Browser, context: BrowserContext) {
    this.workspace = options.workspace;
    this.proxyPort = options.chromium.proxyPort;
    this.#context = context;
    this.downloads = new Downloads(options.workspace, (text) => this.note(text));
    const onRefused = (reason: string): void => this.note(`a file was refused to the page: ${reason}`);
    this.files = new FileGuard({ browser, workspace: options.workspace, onRefused });
    this.openingTabs = new OpeningTabs(context);
    context.on("page", (page) => this.#adopt(page));
    browser.on("disconnected", options.onGone);
  }

  static async start(options: SessionOptions): Promise<BrowserSession> {
    const { browser, context } = await startChromium(options.chromium);
    return new BrowserSession(options, browser, context);
  }

  get context(): BrowserContext {
    return this.#context;
  }

  get tabs(): readonly Tab[] {
    return this.#tabs;
  }

  /** The tab that calls are about; there is always one. */
  async tab(): Promise<Tab> {
    const current = this.#current;
    if (current !== undefined && !current.isCrashed && !current.page.isClosed()) return current;
    if (current?.isCrashed === true) {
      this.note("the page had crashed and was closed");
      await this.close(current);
    }
    return this.#current ?? (await this.open());
  }

  async page(): Promise<Page> {
    return (await this.tab()).page;
  }

  async open(): Promise<Tab> {
    const page = await this.#context.newPage();
    const tab = this.#adopt(page);
    this.#current = tab;
    return tab;
  }

  nextPicture(): number {
    this.#lastPicture += 1;
    return this.#lastPicture;
  }

  select(tab: Tab): void {
    this.#current = tab;
  }

  /** Ends a tab, also one that does not answer any more. */
  async close(tab: Tab): Promise<void> {
    this.#forget(tab);
    await within(tab.page.close(), CLOSE_TIMEOUT_MS).catch(() => {});
  }

  note(event: string): void {
    if (this.#events.length < EVENTS_MAX) this.#events.push(event.replaceAll(/\s+/g, " ").slice(0, EVENT_MAX));
  }

  /** What every answer says. Nothing is said of a page that shows what it must not. */
  async describe(): Promise<BrowserPage> {
    const tab = await this.tab();
    await assertAllowedPage(this, tab);
    const mishap = tab.takeMishap();
    if (mishap !== undefined) this.note(await describeMishap(mishap, this.proxyPort));
    const tabs = this.#tabs.length > 1 ? await Promise.all(this.#tabs.map((other) => this.#describeTab(other))) : [];
    const own = tabs.find(({ isCurrent }) => isCurrent) ?? (await this.#describeTab(tab));
    const events = this.#events;
    this.#events = [];
    return { url: own.url, title: own.title, tabs, events, downloads: this.downloads.take() };
  }

  async #describeTab(tab: Tab): Promise<BrowserTab> {
    const title = await within(tab.title(), TITLE_TIMEOUT_MS).catch(() => "");
    const url = tab.page.url().slice(0, 2000);
    return { tab: tab.number, url, title: title.slice(0, TEXT_MAX), isCurrent: tab === this.#current };
  }

  /** A tab that a page opens is what the user looks at next. */
  #adopt(page: Page): Tab {
    const known = this.#tabs.find((tab) => tab.page === page);
    if (known !== undefined) return known;
    this.#lastTab += 1;
    const tab = new Tab(this.#lastTab, page);
    const mishap = this.openingTabs.take(page);
    if (mishap !== undefined) tab.begin(mishap);
    if (this.#tabs.length > 0) this.note(`a new tab opened: tab ${tab.number}, which is now the current one`);
    this.#tabs.push(tab);
    this.#current = tab;
    page.on("dialog", (dialog) => void this.#answer(dialog));
    page.on("download", (download) => this.downloads.save(download));
    page.on("crash", () => this.note(`tab ${tab.number} crashed; it may have used too much memory`));
    page.on("close", () => this.#forget(tab));
    if (this.#tabs.length > TABS_MAX) this.#closeOldest();
    return tab;
  }

  #closeOldest(): void {
    const oldest = this.#tabs.find((tab) => tab !== this.#current);
    if (oldest === undefined) return;
    this.note(`tab ${oldest.number} was closed: there are at most ${TABS_MAX}`);
    void this.close(oldest);
  }

  #forget(tab: Tab): void {
    const index = this.#tabs.indexOf(tab);
    if (index >= 0) this.#tabs.splice(index, 1);
    if (this.#current === tab) this.#current = this.#tabs.at(-1);
  }

  /**
   * A question is declined unless the call said otherwise: what it asks about may not be undone. Whether to leave a page is
   * asked when a call leads elsewhere, which is its answer.
   */
  async #answer(dialog: Dialog): Promise<void> {
    const type = dialog.type();
    const isAccepted = type === "alert" || type === "beforeunload" || this.acceptsDialogs;
    this.note(`dialog ${type} "${dialog.message().slice(0, TEXT_MAX)}" was ${isAccepted ? "accepted" : "dismissed"}`);
    const answering = isAccepted ? dialog.accept(dialog.defaultValue()) : dialog.dismiss();
    // The page may be gone before it hears the answer.
    await answering.catch(() => {});
  }
}
