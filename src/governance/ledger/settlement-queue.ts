import { setImmediate as nextTurn } from "node:timers/promises";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Settled, Settlement, Spending } from "./store.ts";

/** What came of one settlement. */
export interface Recorded {
  /** 0 where it has no row. */
  readonly seq: number;
  readonly spendings: readonly Spending[];
}

interface Waiting {
  readonly settlement: Settlement;
  readonly resolve: (recorded: Recorded) => void;
  readonly reject: (error: OwlError) => void;
}

export interface SettlementQueueOptions {
  readonly write: (batch: readonly Settlement[]) => Promise<Settled>;
  readonly onWritten: (settled: Settled) => void;
  readonly onFailed: (error: OwlError) => void;
  /** Resolves when no more rows are about to come. */
  readonly gathered: () => Promise<void>;
}

const MAX_BATCH_ROWS = 512;
const MAX_WAITING_ROWS = 20_000;
/** A disk that does not answer at all must not keep callers waiting. */
const DEADLINE_MS = 10_000;

/** Calls whose end could not be written. Their starts are in the store: those beyond this are settled by the next start. */
const MAX_OWED = 100_000;

/** Group commit: what is settled while a commit runs goes into the next one together. */
export class SettlementQueue {
  readonly #options: SettlementQueueOptions;
  #waiting: Waiting[] = [];
  /** Ends of calls that could not be written: each is written once, as soon as the store can be written again. */
  #owed: Settlement[] = [];
  #isWriting = false;
  #isStuck = false;
  #idle: (() => void)[] = [];

  constructor(options: SettlementQueueOptions) {
    this.#options = options;
  }

  settle(settlement: Settlement): Promise<Recorded> {
    const refusal = this.#isStuck ? stuck() : this.#waiting.length >= MAX_WAITING_ROWS ? tooMany() : undefined;
    if (refusal !== undefined) {
      this.#owe([settlement]);
      return Promise.reject(refusal);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ settlement, resolve, reject });
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
    const settlements = batch.map(({ settlement }) => settlement);
    try {
      const settled = await this.#options.write(settlements);
      batch.forEach(({ resolve }, index) => {
        resolve({ seq: settled.seqs[index] ?? 0, spendings: settled.spendings[index] ?? [] });
      });
      this.#options.onWritten(settled);
      await this.payOff();
    } catch (thrown) {
      const error = toOwlError(thrown, "store_unavailable");
      this.#owe(settlements);
      for (const { reject } of batch) reject(error);
      this.#options.onFailed(error);
    } finally {
      clearTimeout(timer);
      this.#isStuck = false;
    }
  }

  /** Writes what could not be written before, in a transaction of its own. What it cannot write it keeps. */
  async payOff(): Promise<void> {
    if (this.#owed.length === 0) return;
    const owed = this.#owed.splice(0, MAX_BATCH_ROWS);
    try {
      this.#options.onWritten(await this.#options.write(owed));
    } catch {
      this.#owe(owed);
    }
  }

  /** A row alone was refused and is not tried again; a call that has ended must not hold its place for ever. */
  #owe(settlements: readonly Settlement[]): void {
    const ended = settlements.filter(({ call }) => call !== undefined);
    this.#owed.push(...ended.slice(0, MAX_OWED - this.#owed.length));
  }

  /** The write goes on, and may still succeed; but nobody waits for it any more. */
  #giveUp(batch: readonly Waiting[]): void {
    this.#isStuck = true;
    const waiting = this.#waiting.splice(0);
    this.#owe(waiting.map(({ settlement }) => settlement));
    for (const { reject } of [...batch, ...waiting]) reject(stuck());
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
