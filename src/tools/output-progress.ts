import type { OnOutput } from "../../contract/guest.ts";
import type { CallContext } from "../capability/context.ts";

const INTERVAL_MS = 200;
const MAX_MESSAGE_CHARS = 2000;

/** Sends what a call prints as progress, a few times a second, to clients that asked for progress. */
export function progressOf(context: CallContext): OnOutput {
  const startedAtMs = performance.now();
  let pending = "";
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    timer = undefined;
    if (context.signal.aborted) return;
    const seconds = (performance.now() - startedAtMs) / 1000;
    context.progress(seconds, { message: pending });
    pending = "";
  };
  return ({ text }) => {
    // Of a flood the latest is shown; the result has the rest.
    pending = (pending + text).slice(-MAX_MESSAGE_CHARS);
    timer ??= setTimeout(send, INTERVAL_MS).unref();
  };
}
