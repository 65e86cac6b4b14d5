import type { ChainedBatch } from "./chain.ts";
import type { Cut } from "./checkpoint.ts";
import type { LedgerHead } from "./ledger.ts";
import type { DayShift, LedgerFilter, LedgerStats, Page, TimelineCount, TimelineSpan } from "./query.ts";
import type { Draft, LedgerRow } from "./row.ts";
import type { VerifyOptions, VerifyReport } from "./verify.ts";

/** The result of a write. */
export type Appended = Pick<ChainedBatch, "seqs" | "checkpoints" | "head">;

/** Identifies a call from its admission to its settlement. Never used twice in one store. */
export type CallId = number;

/** A row, the end of an admitted call, or both. */
export interface Settlement {
  readonly draft?: Draft | undefined;
  /**
   * The call that ends. When its start is not in the store any more, the call has ended already: row and cost are left
   * out.
   */
  readonly call?: CallId | undefined;
  readonly costMicros?: number | undefined;
  /** Set when the work of the call continues: its start stays, with this row in case the process dies. */
  readonly goesOnAs?: Draft | undefined;
}

/** What was spent under one key in the month of the call, before and with its cost. */
export interface Spending {
  readonly key: string;
  readonly beforeMicros: number;
  readonly afterMicros: number;
}

/** The result of a batch of settlements. */
export interface Settled extends Appended {
  /** The row number of each settlement; 0 when it has no row. */
  readonly seqs: readonly number[];
  /** The spendings of each settlement. */
  readonly spendings: readonly (readonly Spending[])[];
}

/** A store of rows that also records which calls have begun. */
export interface SettlingStore extends LedgerStore {
  /** One durable transaction: releases what the calls hold, books their costs, appends their rows. */
  settle(batch: readonly Settlement[]): Promise<Settled>;
  /** Settles the calls of processes that died: outcome `unknown`, and the reserved cost. Returns how many. */
  recover(): Promise<number>;
}

/** A store of rows. Several processes may have the same store open: each write reads the head under a lock. */
export interface LedgerStore extends LedgerReader {
  /**
   * Appends all drafts in one transaction, and resolves when they are on disk. An empty list writes to the disk as
   * well, but leaves no change.
   */
  append(drafts: readonly Draft[]): Promise<Appended>;
  /** Signs the head, unless the head is a signature itself. */
  seal(): Promise<Appended>;
  /** The hash of a row; `undefined` when there is no such row. */
  hashAt(seq: number): Promise<string | undefined>;
  /** Replaces at most `CUT_ROWS` rows older than this by a signed record; `undefined` when there are none. */
  cut(beforeMs: number): Promise<Cut | undefined>;
}

/** The read-only part of a store. */
export interface LedgerReader {
  head(): Promise<LedgerHead>;
  /** Rows that match, newest first unless the page says otherwise. */
  list(filter: LedgerFilter, page: Page): Promise<readonly LedgerRow[]>;
  get(seq: number): Promise<LedgerRow | undefined>;
  /** Days are in UTC, unless `dayShifts` says how far local time is ahead of it. */
  stats(filter: LedgerFilter, dayShifts?: readonly DayShift[]): Promise<LedgerStats>;
  /** How many rows match. */
  count(filter: LedgerFilter): Promise<number>;
  timeline(filter: LedgerFilter, span: TimelineSpan): Promise<readonly TimelineCount[]>;
  verify(options: VerifyOptions): Promise<VerifyReport>;
  close(): Promise<void>;
}

/** Limits how long a cut holds the lock. */
export const CUT_ROWS = 5000;
