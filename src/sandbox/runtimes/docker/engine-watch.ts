import { type OwlError, toOwlError } from "../../../errors/owl-error.ts";
import type { EngineClient } from "./engine-client.ts";

const INTERVAL_MS = 2000;
const TIMEOUT_MS = 10_000;

export interface EngineWatch {
  /** Why the engine cannot be used now. */
  readonly trouble: OwlError | undefined;
  /** Resolves when nothing of it goes on. */
  close(): Promise<void>;
}

export interface EngineWatchOptions {
  readonly onLost: (error: OwlError) => void;
  readonly onBack: () => Promise<void>;
  /** At every look that finds it. */
  readonly onThere: () => Promise<void>;
}

/** Asks the engine now and then whether it is there, and says when it is back. */
export function watchEngine(engine: EngineClient, { onLost, onBack, onThere }: EngineWatchOptions): EngineWatch {
  let trouble: OwlError | undefined;
  let asking: Promise<void> | undefined;
  const ask = async (): Promise<void> => {
    try {
      await engine.call({ method: "GET", path: "/_ping", timeoutMs: TIMEOUT_MS });
      if (trouble !== undefined) await onBack();
      trouble = undefined;
      await onThere();
    } catch (thrown) {
      if (trouble === undefined) onLost(toOwlError(thrown, "sandbox_unavailable"));
      trouble = toOwlError(thrown, "sandbox_unavailable");
    }
  };
  const timer = setInterval(() => {
    asking ??= ask().finally(() => (asking = undefined));
  }, INTERVAL_MS).unref();
  return {
    get trouble() {
      return trouble;
    },
    close: async () => {
      clearInterval(timer);
      await asking;
    },
  };
}
