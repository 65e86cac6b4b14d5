import type { ChainedBatch } from "./chain.ts";
import type { Cut } from "./checkpoint.ts";
import type { LedgerHead } from "./ledger.ts";
import type { DayShift, LedgerFilter, LedgerStats, Page, TimelineCount, TimelineSpan } from "./query.ts";
import type { Draft, LedgerRow } from "./row.ts";
import type { VerifyOptions, VerifyReport } from "./verify.ts";

/** What came of a write. */
export type Appended = Pick<ChainedBatch, "seqs" | "checkpoints" | "head">;

/** Names a call from its admission to its settlement. Never given twice in one store. */
export type CallId = number;

/** A row, the end of an admitted call, or both. */
export interface Settlement {
  readonly draft?: Draft | undefined;
  /** The call that ends. Where its start is not in the store any more it has ended already: row and cost are left out. */
  readonly call?: CallId | undefined;
  readonly costMicros?: number | undefined;
  /** The work of the call goes on: its start stays, with this row for the case that the process dies. */
  readonly goesOnAs?: Draft | undefined;
}

/** What was spent under one key in the month of the call, before and with its cost. */
export interface Spending {
  readonly key: string;
  readonly beforeMicros: number;
  readonly afterMicros: number;
}

/** What came of a batch of settlements. */
export interface Settled extends Appended {
  /** By settlement: the number of its row, 0 where it has none. */
  readonly seqs: readonly number[];
  /** By settlement. */
  readonly spendings: readonly (readonly Spending[])[];
}

/** A store of rows that also knows which calls have begun. */
export interface SettlingStore extends LedgerStore {
  /** One durable transaction: releases what the calls hold, books their costs, appends their rows. */
  settle(batch: readonly Settlement[]): Promise<Settled>;
  /** Settles the calls of processes that died: outcome `unknown`, and the reserved cost. Says how many have ended. */
  recover(): Promise<number>;
}

/** Where rows are kept. Several processes may have the same store open: each write reads the head under a lock. */
export interface LedgerStore extends LedgerReader {
  /** One transaction for all of them. When it resolves, they are on disk; none of them writes too, and leaves nothing. */
  append(drafts: readonly Draft[]): Promise<Appended>;
  /** Signs the head, unless the head is such a signature. */
  seal(): Promise<Appended>;
  /** The hash of a row that is there. */
  hashAt(seq: number): Promise<string | undefined>;
  /** Replaces at most `CUT_ROWS` rows older than this by a signed record; nothing when there are none. */
  cut(beforeMs: number): Promise<Cut | undefined>;
}

/** The part that changes nothing. */
export interface LedgerReader {
  head(): Promise<LedgerHead>;
  /** Rows that match, newest first unless the page says otherwise. */
  list(filter: LedgerFilter, page: Page): Promise<readonly LedgerRow[]>;
  get(seq: number): Promise<LedgerRow | undefined>;
  /** Days are those of UTC, unless it is said how far local time is ahead of it. */
  stats(filter: LedgerFilter, dayShifts?: readonly DayShift[]): Promise<LedgerStats>;
  /** How many rows match. */
  count(filter: LedgerFilter): Promise<number>;
  timeline(filter: LedgerFilter, span: TimelineSpan): Promise<readonly TimelineCount[]>;
  verify(options: VerifyOptions): Promise<VerifyReport>;
  close(): Promise<void>;
}

/** So that a cut never holds the lock for long. */
export const CUT_ROWS = 5000;
