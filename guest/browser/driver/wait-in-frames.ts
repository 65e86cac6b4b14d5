import { setTimeout as delay } from "node:timers/promises";
import type { Frame, Page } from "playwright-core";
import { DeadlineError, within } from "./within.ts";

const LOOK_EVERY_MS = 100;
/** A frame that does not answer keeps nobody from looking at the others. */
const FRAME_MS = 1000;

interface TextWait {
  readonly text: string;
  readonly isGone: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Until a text is shown in one of the frames that there are by then, or in none of them. */
export async function waitInFrames(page: Page, { text, isGone, timeoutMs, signal }: TextWait): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const looks = page.frames().map(async (frame) => await isSeen(frame, text, isGone));
    const isThere = (await Promise.all(looks)).includes(true);
    if (isThere !== isGone) return;
    if (performance.now() > endMs) throw new DeadlineError(timeoutMs);
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** `otherwise`: what is taken for true of a frame that does not answer. */
async function isSeen(frame: Frame, text: string, otherwise: boolean): Promise<boolean> {
  try {
    return await within(shows(frame, text), FRAME_MS);
  } catch (error) {
    // A frame that went away meanwhile shows nothing.
    return error instanceof DeadlineError && otherwise;
  }
}

async function shows(frame: Frame, text: string): Promise<boolean> {
  if ((await frame.getByText(text).filter({ visible: true }).count()) === 0) return false;
  for (let inner = frame, outer = frame.parentFrame(); outer !== null; inner = outer, outer = outer.parentFrame()) {
    if (!(await (await inner.frameElement()).isVisible())) return false;
  }
  return true;
}
