import type { CallId, SettlingStore, Settlement } from "../ledger/store.ts";
import type { Draft } from "../ledger/row.ts";
import type { Counter } from "../policy/terms.ts";
import type { LedgerKeys } from "../ledger/keys.ts";
import { isSealed, rowOfDead, type Start } from "./admit-batch.ts";

export type LimitName = "callsPerMinute" | "callsPerDay" | "concurrency" | "monthlyBudget";

/** How much of one limit is used. Money is in micro-units. */
export interface Used {
  readonly name: LimitName;
  readonly rule: string;
  readonly limit: number;
  readonly used: number;
  /** When the count is back at 0 or, for the sliding minute, when its oldest call leaves it. */
  readonly resetsAtMs: number | undefined;
}

export interface AdmitRequest {
  readonly counters: readonly Counter[];
  readonly reserveMicros: number;
  /** The row that the call gets if this process ends before the call does. Without it the call ends without a row and without a cost. */
  readonly draft?: Draft | undefined;
}

export interface LimitRefusal extends Used {
  /**
   * How long to wait until the call would be admitted if no other call arrives; `undefined` where that is not known.
   */
  readonly retryAfterMs: number | undefined;
}

/** What an admitted call holds until it is settled. */
export interface Lease {
  readonly call: CallId;
  readonly counters: readonly Counter[];
  readonly month: string;
  readonly reserveMicros: number;
}

export type Admission =
  | { readonly ok: true; readonly lease: Lease; readonly used: readonly Used[] }
  | { readonly ok: false; readonly refusal: LimitRefusal; readonly used: readonly Used[] };

/**
 * Admits and settles the calls of all processes that share the store. Each operation takes a batch and is one
 * transaction. Calls that cannot be counted are refused: every method rejects with `store_unavailable` when the store
 * does not answer.
 */
export interface GovernanceStore extends SettlingStore {
  /**
   * Counts each call under all its counters, or under none, makes its reservations, and records its start. Not synced:
   * a process that is killed loses nothing, and a power cut ends the calls as well. When the store is a database server
   * that crashes alone, calls in flight are counted again.
   */
  admit(batch: readonly AdmitRequest[]): Promise<readonly Admission[]>;
  usage(counters: readonly Counter[]): Promise<readonly Used[]>;
}

/**
 * How a call of a dead process is settled: with the row that it left, and the cost that was reserved. A call without a
 * row had not begun to run. A start that was not sealed with this server's key adds no row to the ledger.
 */
export function settlementOfDead(keys: LedgerKeys, start: Start): Settlement {
  const draft = isSealed(keys, start) ? rowOfDead(start) : undefined;
  return draft === undefined ? { call: start.call } : { call: start.call, draft, costMicros: start.micros };
}
