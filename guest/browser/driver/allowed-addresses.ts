import { fileURLToPath } from "node:url";
import { Failure } from "../../failure.ts";
import type { Workspace } from "../../paths.ts";
import type { BrowserSession } from "./session.ts";
import type { Tab } from "./tab.ts";

const SCHEMES = new Set(["http:", "https:", "about:", "data:", "blob:", "chrome-error:"]);
const HINT = "use http:// or https://, or file:// with a path in the workspace";

/** What a caller writes as an address, complete: `localhost:3000` is a server, and a path is a file of the workspace. */
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

/** Files of the workspace alone, and none of the browser's own pages. */
export function assertAllowed(address: string, workspace: Workspace): void {
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

/** A page can lead elsewhere than where it was asked for: what it must not show is closed before anybody sees it. */
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
