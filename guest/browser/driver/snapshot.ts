import type { GuestParams, GuestResult } from "../../../contract/guest.ts";
import type { Frame } from "playwright-core";
import type { FrameReport } from "../page-report.ts";
import { assertAllowedPage } from "./allowed-addresses.ts";
import { askPage } from "./locate.ts";
import type { BrowserSession } from "./session.ts";
import type { SnapshotLine } from "./snapshot-pages.ts";
import { within } from "./within.ts";

const FRAMES_MAX = 30;
const FRAME_TIMEOUT_MS = 3000;
/** Time for all frames that do not answer, and for all that never had a page, such as one of `file:` in a page of a server. */
const SILENT_FRAMES_MS = 3000;
const EMPTY_FRAMES_MS = 1000;
/** Time for each frame after that. */
const LEAST_FRAME_MS = 100;

export async function takeSnapshot(
  session: BrowserSession,
  params: GuestParams["browser.snapshot"],
  signal: AbortSignal,
): Promise<GuestResult<"browser.snapshot">> {
  const { maxChars, timeoutMs } = params;
  const tab = await session.tab();
  await assertAllowedPage(session, tab);
  const cursor =
    params.cursor ?? session.snapshots.add(await readPage(session, tab.page.mainFrame(), { timeoutMs, signal }));
  const part = session.snapshots.read(cursor, maxChars);
  return { ...(await session.describe()), ...part };
}

interface ReadOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The page with its frames at their positions; hidden frames come last and are marked. */
async function readPage(session: BrowserSession, main: Frame, options: ReadOptions): Promise<SnapshotLine[]> {
  const hidden: string[] = [];
  const lines = await new FrameReader(session, hidden, options).read(main);
  return [...lines, ...hidden.map((text) => ({ text, elements: [], start: "[hidden] " }))];
}

class FrameReader {
  readonly #session: BrowserSession;
  readonly #hidden: string[];
  readonly #options: ReadOptions;
  #frames = 0;
  #lostMs = 0;

  constructor(session: BrowserSession, hidden: string[], options: ReadOptions) {
    this.#session = session;
    this.#hidden = hidden;
    this.#options = options;
  }

  async read(frame: Frame): Promise<SnapshotLine[]> {
    this.#frames += 1;
    const report = await readFrame(frame, this.#session.refs.next, this.#options);
    this.#session.refs.add(Object.keys(report.elements).map(Number), frame, report.nextRef);
    this.#hidden.push(...report.hidden);
    const lines: SnapshotLine[] = [];
    for (const { text, refs, frame: inner } of report.lines) {
      lines.push({ text, elements: refs.map((ref) => `[ref_${ref}] ${report.elements[ref] ?? "element"}`) });
      if (inner !== undefined) lines.push(...(await this.#readInner(frame, inner)));
    }
    if (report.isCut) lines.push({ text: "[the page has more than can be shown]", elements: [] });
    return lines;
  }

  /** A frame that is slow or removed affects only its own lines. */
  async #readInner(outer: Frame, ref: number): Promise<SnapshotLine[]> {
    if (this.#frames >= FRAMES_MAX) return [{ text: "  [too many frames to show this one]", elements: [] }];
    try {
      const handle = await outer.locator(`owl=ref:${ref}`).elementHandle({ timeout: FRAME_TIMEOUT_MS });
      const inner = await handle?.contentFrame();
      await handle?.dispose();
      if (inner === null || inner === undefined) return [];
      await this.#expectAnswer(inner);
      return (await this.read(inner)).map(({ text, elements }) => ({ text: `  ${text}`, elements }));
    } catch {
      return [{ text: "  [this frame could not be read]", elements: [] }];
    }
  }

  /** Limits the time of a frame without a page, or with a script that never ends. */
  async #expectAnswer(frame: Frame): Promise<void> {
    const isEmpty = frame.url() === "";
    const left = (isEmpty ? EMPTY_FRAMES_MS : SILENT_FRAMES_MS) - this.#lostMs;
    if (isEmpty && left <= 0) throw new Error("the frame has no page");
    const begin = performance.now();
    try {
      await within(askPage(frame, "look:0"), Math.max(left, LEAST_FRAME_MS));
    } catch (error) {
      this.#lostMs += performance.now() - begin;
      throw error;
    }
  }
}

async function readFrame(frame: Frame, nextRef: number, { timeoutMs, signal }: ReadOptions): Promise<FrameReport> {
  const report = await askPage<FrameReport>(frame, `snapshot:${nextRef}`, { timeout: timeoutMs, signal });
  if (report === undefined) throw new Error("the page reports nothing");
  return report;
}
