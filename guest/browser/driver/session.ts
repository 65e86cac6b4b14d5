import type { BrowserPage, BrowserTab } from "../../../contract/guest.ts";
import type { Browser, BrowserContext, Dialog, Page, Frame } from "playwright-core";
import type { Workspace } from "../../paths.ts";
import { assertAllowedPage, FileGuard } from "./allowed-addresses.ts";
import { startChromium, type ChromiumOptions } from "./chromium.ts";
import { Downloads } from "./downloads.ts";
import { describeLoadFailure } from "./navigation-failure.ts";
import { OpeningTabs } from "./opening-tabs.ts";
import { SnapshotPages } from "./snapshot-pages.ts";
import { Tab } from "./tab.ts";
import { within } from "./within.ts";

const TABS_MAX = 20;
const EVENTS_MAX = 50;
const TITLE_TIMEOUT_MS = 5000;
const CLOSE_TIMEOUT_MS = 2000;
const TEXT_MAX = 300;
/** An address, its failure and a hint. */
const EVENT_MAX = 1000;
/** Limits the refs of a browser that is used for days. */
const REFS_MAX = 50_000;

interface SessionOptions {
  readonly chromium: ChromiumOptions;
  readonly workspace: Workspace;
  /** The browser has exited. */
  readonly onGone: () => void;
}

/** One running browser: its tabs, and what happened in them since the last answer. */
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
  /** Tabs in the order in which they were current: when the current one closes, the one before becomes current. */
  #chosen: Tab[] = [];
  /** The tab with an action of the agent in progress, which may open another tab. */
  #acting: Tab | undefined;
  #isOpening = false;
  readonly #openers = new WeakMap<Page, Tab>();
  #lastTab = 0;
  #lastPicture = 0;
  #events: string[] = [];
  /** How dialogs are answered while a call sets it. */
  acceptsDialogs = false;

  private constructor(options: SessionOptions, browser: Browser, context: BrowserContext) {
    this.workspace = options.workspace;
    this.proxyPort = options.chromium.proxyPort;
    this.#context = context;
    this.downloads = new Downloads(options.workspace, (text) => this.note(text));
    const onRefused = (reason: string): void => this.note(`a file was refused to the page: ${reason}`);
    this.files = new FileGuard({ browser, workspace: options.workspace, onRefused });
    this.openingTabs = new OpeningTabs(context);
    context.on("page", (page) => this.#onPage(page));
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

  /** The current tab; there is always one. */
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
    this.#isOpening = true;
    try {
      const page = await this.#context.newPage();
      const tab = this.#tabs.find((known) => known.page === page) ?? this.#add(page);
      this.select(tab);
      return tab;
    } finally {
      this.#isOpening = false;
    }
  }

  /** The first tab that the current page opens during the action becomes the current one. */
  async acting<T>(work: () => Promise<T>): Promise<T> {
    this.#acting = await this.tab();
    try {
      return await work();
    } finally {
      this.#acting = undefined;
    }
  }

  get #current(): Tab | undefined {
    return this.#chosen.at(-1);
  }

  nextPicture(): number {
    this.#lastPicture += 1;
    return this.#lastPicture;
  }

  select(tab: Tab): void {
    this.#chosen = [...this.#chosen.filter((other) => other !== tab), tab];
  }

  /** Closes a tab, also one that does not answer. */
  async close(tab: Tab): Promise<void> {
    this.#forget(tab);
    await within(tab.page.close(), CLOSE_TIMEOUT_MS).catch(() => {});
  }

  note(event: string): void {
    if (this.#events.length < EVENTS_MAX) this.#events.push(event.replaceAll(/\s+/g, " ").slice(0, EVENT_MAX));
  }

  /** The part of every answer. It contains nothing of a page with a forbidden address. */
  async describe(): Promise<BrowserPage> {
    const tab = await this.tab();
    await assertAllowedPage(this, tab);
    const loadFailure = tab.takeLoadFailure();
    if (loadFailure !== undefined) this.note(await describeLoadFailure(loadFailure, this.proxyPort));
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

  /**
   * A page may open tabs at any time. Only a tab that an action of the agent opens becomes the current one: otherwise the agent's
   * next input could go to a page that it does not know. The opener is known right after the tab exists.
   */
  #onPage(page: Page): void {
    const tab = this.#add(page);
    const [acting, isOpening] = [this.#acting, this.#isOpening];
    queueMicrotask(() => {
      const opener = this.#openers.get(page);
      const isOurs = opener === undefined ? isOpening : opener === acting && acting === this.#acting;
      // One action opens one tab: further tabs were opened by the page.
      if (isOurs) this.#acting = undefined;
      this.#tellOpened(tab, isOurs);
    });
  }

  #tellOpened(tab: Tab, isOurs: boolean): void {
    if (!this.#tabs.includes(tab)) return;
    if (isOurs) this.select(tab);
    if (isOurs && this.#tabs.length === 1) return;
    if (isOurs) this.note(`a new tab opened: tab ${tab.number}, which is now the current one`);
    else this.note(`a page opened a popup by itself: tab ${tab.number}, which is not the current one`);
    if (this.#tabs.length > TABS_MAX) this.#closeOne(isOurs ? undefined : tab);
  }

  #add(page: Page): Tab {
    this.#lastTab += 1;
    const tab = new Tab(this.#lastTab, page);
    const loadFailure = this.openingTabs.take(page);
    if (loadFailure !== undefined) tab.begin(loadFailure);
    this.#tabs.push(tab);
    page.on("popup", (popup) => this.#openers.set(popup, tab));
    page.on("dialog", (dialog) => void this.#answer(dialog));
    page.on("download", (download) => this.downloads.save(download));
    page.on("crash", () => this.note(`tab ${tab.number} crashed; it may have used too much memory`));
    page.on("close", () => this.#onClosed(tab));
    return tab;
  }

  /** Popups are closed first: a page must not close the agent's tabs by opening others. */
  #closeOne(popup: Tab | undefined): void {
    const oldest =
      popup ?? this.#tabs.find((tab) => !this.#chosen.includes(tab)) ?? this.#tabs.find((tab) => tab !== this.#current);
    if (oldest === undefined) return;
    this.note(`tab ${oldest.number} was closed: there are at most ${TABS_MAX}`);
    void this.close(oldest);
  }

  #forget(tab: Tab): void {
    const index = this.#tabs.indexOf(tab);
    if (index >= 0) this.#tabs.splice(index, 1);
    this.#chosen = this.#chosen.filter((other) => other !== tab);
  }

  /** Called when the page is closed by itself: a tab that the agent closes has been removed before. */
  #onClosed(tab: Tab): void {
    const wasCurrent = tab === this.#current;
    this.#forget(tab);
    if (!wasCurrent) return;
    const current = this.#current;
    const now =
      current === undefined
        ? "a new one is opened for the next call"
        : `tab ${current.number} is the current one again`;
    this.note(`the page closed its tab ${tab.number}: ${now}`);
  }

  /**
   * A dialog is dismissed unless the call says otherwise: the action that it confirms may be irreversible. `beforeunload` is
   * accepted, because the agent's call navigates.
   */
  async #answer(dialog: Dialog): Promise<void> {
    const type = dialog.type();
    const message = dialog
      .message()
      .slice(0, TEXT_MAX)
      .replaceAll(/["\\]/g, String.raw`\$&`);
    const isAccepted = type === "alert" || type === "beforeunload" || this.acceptsDialogs;
    this.note(`dialog ${type} "${message}" was ${isAccepted ? "accepted" : "dismissed"}`);
    const answering = isAccepted ? dialog.accept(dialog.defaultValue()) : dialog.dismiss();
    // The page may be closed before the answer arrives.
    await answering.catch(() => {});
  }
}

/** The frame of each ref. A number is never reused in one browser. */
class RefTable {
  /** Refs of the latest snapshots are last. */
  readonly #known = new Map<number, Frame>();
  #next = 1;

  get next(): number {
    return this.#next;
  }

  add(refs: readonly number[], frame: Frame, next: number): void {
    for (const ref of refs) {
      this.#known.delete(ref);
      this.#known.set(ref, frame);
    }
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= REFS_MAX) break;
      this.#known.delete(oldest);
    }
    this.#next = Math.max(this.#next, next);
  }

  frameOf(ref: number): Frame | undefined {
    const frame = this.#known.get(ref);
    return frame?.isDetached() === true ? undefined : frame;
  }
}
