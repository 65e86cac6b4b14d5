import { setImmediate as nextTurn } from "node:timers/promises";
import { OwlError, toOwlError } from "../errors/owl-error.ts";
import type { Draft } from "./row.ts";
import type { Appended } from "./store.ts";

interface Waiting {
  readonly draft: Draft;
  readonly resolve: (row: { readonly seq: number }) => void;
  readonly reject: (error: OwlError) => void;
}

export interface AppendQueueOptions {
  readonly write: (drafts: readonly Draft[]) => Promise<Appended>;
  readonly onWritten: (appended: Appended) => void;
  readonly onFailed: (error: OwlError) => void;
  /** Resolves when no more rows are about to come. */
  readonly gathered: () => Promise<void>;
}

const MAX_BATCH_ROWS = 512;
const MAX_WAITING_ROWS = 20_000;
/** A disk that does not answer at all must not keep callers waiting. */
const DEADLINE_MS = 10_000;

/** Group commit: rows that come while a commit runs go into the next one together. */
export class AppendQueue {
  readonly #options: AppendQueueOptions;
  #waiting: Waiting[] = [];
  #isWriting = false;
  #isStuck = false;
  #idle: (() => void)[] = [];

  constructor(options: AppendQueueOptions) {
    this.#options = options;
  }

  append(draft: Draft): Promise<{ readonly seq: number }> {
    if (this.#isStuck) return Promise.reject(stuck());
    if (this.#waiting.length >= MAX_WAITING_ROWS) return Promise.reject(tooMany());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ draft, resolve, reject });
      if (!this.#isWriting) void this.#run();
    });
  }

  /** Resolves when nothing is waiting any more. */
  async drained(): Promise<void> {
    if (!this.#isWriting && this.#waiting.length === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async #run(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      // A commit costs many times what a row does. What this turn of the loop brings is here when it is over.
      await nextTurn();
      await this.#options.gathered();
      await this.#writeBatch();
    }
    this.#isWriting = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  async #writeBatch(): Promise<void> {
    const batch = this.#waiting.slice(0, MAX_BATCH_ROWS);
    this.#waiting = this.#waiting.slice(MAX_BATCH_ROWS);
    const timer = setTimeout(() => this.#giveUp(batch), DEADLINE_MS);
    try {
      const appended = await this.#options.write(batch.map(({ draft }) => draft));
      batch.forEach(({ resolve, reject }, index) => {
        const seq = appended.seqs[index];
        if (seq === undefined) reject(stuck());
        else resolve({ seq });
      });
      this.#options.onWritten(appended);
    } catch (thrown) {
      const error = toOwlError(thrown, "store_unavailable");
      for (const { reject } of batch) reject(error);
      this.#options.onFailed(error);
    } finally {
      clearTimeout(timer);
      this.#isStuck = false;
    }
  }

  /** The write goes on, and may still succeed; but nobody waits for it any more. */
  #giveUp(batch: readonly Waiting[]): void {
    this.#isStuck = true;
    for (const { reject } of [...batch, ...this.#waiting.splice(0)]) reject(stuck());
    this.#options.onFailed(stuck());
  }
}

function stuck(): OwlError {
  return new OwlError("store_unavailable", `the ledger's store has not answered for ${DEADLINE_MS / 1000} seconds`);
}

function tooMany(): OwlError {
  return new OwlError("store_unavailable", "too many calls wait for the ledger", {
    facts: { waiting: MAX_WAITING_ROWS },
  });
}
