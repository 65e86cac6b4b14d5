import { type OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { EngineClient } from "./engine-client.ts";

const INTERVAL_MS = 2000;
const TIMEOUT_MS = 10_000;

export interface EngineWatch {
  /** Why the engine cannot be used now. */
  readonly trouble: OwlError | undefined;
  close(): void;
}

/** Asks the engine now and then whether it is there, and says when it is back. */
export function watchEngine(
  engine: EngineClient,
  { onLost, onBack }: { onLost: (error: OwlError) => void; onBack: () => Promise<void> },
): EngineWatch {
  let trouble: OwlError | undefined;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    isAsking = true;
    try {
      await engine.call({ method: "GET", path: "/_ping", timeoutMs: TIMEOUT_MS });
      if (trouble !== undefined) await onBack();
      trouble = undefined;
    } catch (thrown) {
      if (trouble === undefined) onLost(toOwlError(thrown, "sandbox_unavailable"));
      trouble = toOwlError(thrown, "sandbox_unavailable");
    } finally {
      isAsking = false;
    }
  };
  const timer = setInterval(() => {
    if (!isAsking) void ask();
  }, INTERVAL_MS).unref();
  return {
    get trouble() {
      return trouble;
    },
    close: () => clearInterval(timer),
  };
}
