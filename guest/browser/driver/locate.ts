import type { Frame, Locator, Page } from "playwright-core";
import { Failure } from "../../failure.ts";
import type { Press, Sighting } from "../page-report.ts";
import type { BrowserSession } from "./session.ts";

const REF = /^\[?(?:ref_|ref=)?(\d+)\]?$|^\[?ref_(\w+)\]?$/;
/** Time limit of the `unguard` command: a page that was left does not answer. */
const UNGUARD_MS = 1000;

export interface Located {
  readonly locator: Locator;
  readonly page: Page;
  /** Its description. */
  readonly label: string;
  /** Present when it was found by a ref. */
  readonly known?: { readonly frame: Frame; readonly ref: number };
}

/** Finds an element by a ref of the last snapshot or by CSS. An element that has changed since the snapshot is refused. */
export async function locate(session: BrowserSession, selector: string): Promise<Located> {
  const page = await session.page();
  const trimmed = selector.trim();
  const match = REF.exec(trimmed);
  if (match === null) return { locator: page.locator(`css=${trimmed}`), page, label: trimmed };
  const ref = Number(match[1]);
  const frame = session.refs.frameOf(ref);
  if (frame === undefined && !(ref < session.refs.next)) throw unknownRef(selector);
  if (frame?.page() !== page) throw staleRef(selector);
  const seen = await askPage<Sighting>(frame, `look:${ref}`);
  if (seen === undefined) throw staleRef(selector);
  if (seen.is !== seen.was) throw changedElement(selector, seen);
  return { locator: frame.locator(`owl=ref:${ref}`), page, label: seen.label, known: { frame, ref } };
}

/** Presses an element unless it has changed. Returns its description, if known. */
export async function guarded(
  { known }: Located,
  selector: string,
  press: () => Promise<void>,
): Promise<string | undefined> {
  if (known === undefined) {
    await press();
    return undefined;
  }
  const { frame, ref } = known;
  const seen = await askPage<Sighting>(frame, `guard:${ref}`);
  if (seen !== undefined && seen.is !== seen.was) throw changedElement(selector, seen);
  let pressed: Press | undefined;
  try {
    await press();
  } finally {
    pressed = await askPage<Press>(frame, "unguard:", { timeout: UNGUARD_MS }).catch(() => undefined);
  }
  if (pressed?.isRefused === true) throw changedElement(selector, pressed);
  return pressed?.label;
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

function changedElement(selector: string, { was, is }: Sighting): Failure {
  return new Failure(
    "changed_element",
    `the element was ${was} in the snapshot and is ${is} now (selector=${JSON.stringify(selector)})`,
    "call browser_snapshot again and use one of the returned refs; where a name changes all the time, use a CSS selector",
  );
}

/** Sends a command to the driver's script in a frame. It runs in an isolated world: the page cannot forge its answers. */
export async function askPage<T>(
  frame: Frame,
  command: string,
  options?: { readonly timeout: number; readonly signal?: AbortSignal },
): Promise<T | undefined> {
  const json = await frame.locator(`owl=${command}`).textContent(options);
  // oxlint-disable-next-line typescript/consistent-type-assertions -- our own script wrote it; the host checks what comes of it
  return (JSON.parse(json ?? "null") as T | null) ?? undefined;
}
