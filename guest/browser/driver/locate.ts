import type { Locator, Page } from "playwright-core";
import { Failure } from "../../failure.ts";
import type { BrowserSession } from "./session.ts";

const REF = /^\[?(?:ref_|ref=)?(\d+)\]?$|^\[?ref_(\w+)\]?$/;

export interface Located {
  readonly locator: Locator;
  readonly page: Page;
  /** What it is, for showing. */
  readonly label: string;
}

/** Finds what a caller means: a ref of the last snapshot, or CSS on the page itself. */
export async function locate(session: BrowserSession, selector: string): Promise<Located> {
  const page = await session.page();
  const trimmed = selector.trim();
  const match = REF.exec(trimmed);
  if (match === null) return { locator: page.locator(`css=${trimmed}`), page, label: trimmed };
  const ref = Number(match[1]);
  const frame = session.refs.frameOf(ref);
  if (frame === undefined && !(ref < session.refs.next)) throw unknownRef(selector);
  const locator = frame?.page() === page ? frame.locator(`owl=ref:${ref}`) : undefined;
  if (locator === undefined || (await locator.count()) === 0) throw staleRef(selector);
  return { locator, page, label: session.refs.labelOf(ref) ?? trimmed };
}

function unknownRef(selector: string): Failure {
  return new Failure(
    "element_not_found",
    `element not found (selector=${JSON.stringify(selector)})`,
    "call browser_snapshot first and use one of the returned refs",
  );
}

function staleRef(selector: string): Failure {
  return new Failure(
    "stale_ref",
    `element not found (selector=${JSON.stringify(selector)}): the page has changed since the snapshot that named it`,
    "call browser_snapshot again and use one of the returned refs",
  );
}
