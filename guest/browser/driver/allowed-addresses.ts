import { fileURLToPath } from "node:url";
import { Failure } from "../../failure.ts";
import type { Workspace } from "../../paths.ts";
import type { BrowserSession } from "./session.ts";
import type { Tab } from "./tab.ts";
import type { Browser, CDPSession } from "playwright-core";

const SCHEMES = new Set(["http:", "https:", "about:", "data:", "blob:", "chrome-error:"]);
const HINT = "use http:// or https://, or file:// with a path in the workspace";

/** Completes an address of a caller: `localhost:3000` is a server, and a path is a file in the workspace. */
export function toAddress(text: string, workspace: Workspace): string {
  const trimmed = text.trim();
  const hasScheme = /^[a-z][a-z0-9+.-]*:(?!\d)/i.test(trimmed);
  const isLocal = /^(?:localhost|127\.|\[::1?\]|0\.0\.0\.0)/i.test(trimmed);
  const complete = hasScheme ? trimmed : `${isLocal ? "http" : "https"}://${trimmed}`;
  const url = URL.parse?.(complete) ?? parse(complete);
  if (url === undefined) {
    throw new Failure("bad_address", `${text}: it is no address`, "write it in full, as in http://localhost:3000/");
  }
  if (url.protocol === "chrome-error:" || url.protocol === "blob:") throw refused(url.href);
  assertAllowed(url.href, workspace);
  return url.href;
}

function parse(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** Only files in the workspace, and none of the browser's internal pages. */
function assertAllowed(address: string, workspace: Workspace): void {
  if (address === "") return;
  const url = parse(address);
  if (url === undefined) throw refused(address);
  if (url.protocol === "file:") {
    if (url.hostname !== "") throw refused(address);
    workspace.resolve(toPath(url));
    return;
  }
  if (url.protocol === "about:" && !/^about:(?:blank|srcdoc)/.test(url.href)) throw refused(address);
  if (!SCHEMES.has(url.protocol)) throw refused(address);
}

function toPath(url: URL): string {
  try {
    return fileURLToPath(url);
  } catch {
    throw refused(url.href);
  }
}

/** A page may redirect: a page with a forbidden address is closed before its content is used. */
export async function assertAllowedPage(session: BrowserSession, tab: Tab): Promise<void> {
  try {
    for (const frame of tab.page.frames()) assertAllowed(frame.url(), session.workspace);
  } catch (error) {
    await session.close(tab);
    throw error;
  }
}

function refused(address: string): Failure {
  return new Failure("refused_address", `${address.slice(0, 200)}: the browser does not open such addresses`, HINT);
}

interface FileGuardOptions {
  readonly browser: Browser;
  readonly workspace: Workspace;
  readonly onRefused: (reason: string) => void;
}

/** Refuses requests of pages for files outside the workspace, such as pictures, scripts, styles or frames, before they are read. */
export class FileGuard {
  readonly #options: FileGuardOptions;
  #watching: Promise<void> | undefined;

  constructor(options: FileGuardOptions) {
    this.#options = options;
  }

  /**
   * Must be called before a file is opened as a page. The browser lets no page of a server request files, so until then no
   * request has to be intercepted.
   */
  async watch(): Promise<void> {
    this.#watching ??= this.#start();
    this.#watching.catch(() => (this.#watching = undefined));
    await this.#watching;
  }

  /** For the whole browser: a tab or frame that a page makes is intercepted from its first request. */
  async #start(): Promise<void> {
    const cdp = await this.#options.browser.newBrowserCDPSession();
    cdp.on("Fetch.requestPaused", ({ requestId, request }) => void this.#answer(cdp, requestId, request.url));
    await cdp.send("Fetch.enable", { patterns: [{ urlPattern: "file://*" }] });
  }

  async #answer(cdp: CDPSession, requestId: string, url: string): Promise<void> {
    const answering = this.#isAllowed(url)
      ? cdp.send("Fetch.continueRequest", { requestId })
      : cdp.send("Fetch.failRequest", { requestId, errorReason: "AccessDenied" });
    // The page may be closed before the answer arrives.
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
