import { setImmediate as nextTurn } from "node:timers/promises";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Settled, Settlement, Spending } from "./store.ts";

/** The result of one settlement. */
export interface Recorded {
  /** 0 when it has no row. */
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
  /** Resolves when no more rows are about to be queued. */
  readonly gathered: () => Promise<void>;
}

const MAX_BATCH_ROWS = 512;
const MAX_WAITING_ROWS = 20_000;
/** Callers do not wait longer than this for a disk that does not answer. */
const DEADLINE_MS = 10_000;

/**
 * The most calls whose end is kept for a later write. Their starts are in the store: the next start settles the others.
 */
const MAX_OWED = 100_000;

/** Group commit: settlements that arrive during a commit are written together by the next one. */
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
      // A commit costs many times as much as a row, so this waits for the other settlements of this turn of the event
      // loop.
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

  /** Writes what could not be written before, in a separate transaction. What fails again is kept. */
  async payOff(): Promise<void> {
    if (this.#owed.length === 0) return;
    const owed = this.#owed.splice(0, MAX_BATCH_ROWS);
    try {
      this.#options.onWritten(await this.#options.write(owed));
    } catch {
      this.#owe(owed);
    }
  }

  /**
   * A row without a call is not tried again: its caller has the error. The end of a call is, so that the call does not
   * keep its reservation.
   */
  #owe(settlements: readonly Settlement[]): void {
    const ended = settlements.filter(({ call }) => call !== undefined);
    this.#owed.push(...ended.slice(0, MAX_OWED - this.#owed.length));
  }

  /** The write continues and may still succeed, but no caller waits for it any more. */
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
