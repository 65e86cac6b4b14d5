import { setImmediate } from "node:timers/promises";
import type { Logger } from "../../telemetry/logger.ts";
import type { LedgerStore } from "./store.ts";

const DAY_MS = 86_400_000;
const CHECK_EVERY_MS = 3_600_000;

export interface RetentionOptions {
  readonly store: Pick<LedgerStore, "cut">;
  readonly retentionDays: number;
  /** Rows from this time on stay: what an operator has not acknowledged is not removed. */
  readonly keepFromMs: () => number | undefined;
  readonly logger: Logger;
}

/** Removes old rows, now and every hour, a few at a time so that calls do not wait behind it. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void>;
  #isClosed = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#running = this.#run();
    this.#timer = setInterval(() => {
      this.#running = this.#running.then(() => this.#run());
    }, CHECK_EVERY_MS).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, retentionDays, keepFromMs, logger } = this.#options;
    const beforeMs = Math.min(Date.now() - retentionDays * DAY_MS, keepFromMs() ?? Number.POSITIVE_INFINITY);
    try {
      while (!this.#isClosed) {
        const cut = await store.cut(beforeMs);
        if (cut === undefined) return;
        logger.info("old rows of the ledger were removed", { up_to: cut.to, before: new Date(beforeMs).toISOString() });
        await setImmediate();
      }
    } catch (error) {
      logger.error("old rows of the ledger could not be removed", { error });
    }
  }
}
