import type { Call } from "./call.ts";

export interface Informed {
  /** The call, with a conversation that notices when the capability reports progress itself. */
  readonly call: Call;
  stop(): void;
}

/**
 * Tells the client that a long call is still alive, as long as the capability says nothing itself. Progress values
 * must rise, so ours count seconds and end with the first report of the capability's own.
 */
export function keepInformed(
  call: Call,
  { afterMs, what }: { readonly afterMs: number; readonly what: string },
): Informed {
  const startedAt = performance.now();
  const tick = (): void => {
    const seconds = (performance.now() - startedAt) / 1000;
    call.conversation.progress(seconds, { message: `${what} has been running for ${Math.round(seconds)} s` });
  };
  const timer = setInterval(tick, afterMs);
  timer.unref();
  const stop = (): void => clearInterval(timer);
  const conversation: Call["conversation"] = {
    ...call.conversation,
    progress(done, options) {
      stop();
      call.conversation.progress(done, options);
    },
  };
  return { call: { ...call, conversation }, stop };
}
