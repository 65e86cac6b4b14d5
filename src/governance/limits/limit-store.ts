import type { Counter } from "../policy/terms.ts";

export type LimitName = "callsPerMinute" | "callsPerDay" | "concurrency" | "monthlyBudget";

/** How much of one cap is used. Money is in micro-units. */
export interface Used {
  readonly name: LimitName;
  readonly rule: string;
  readonly limit: number;
  readonly used: number;
  /** When it is whole again, or, for the sliding minute, when the next call falls out of it. */
  readonly resetsAtMs: number | undefined;
}

export interface AdmitRequest {
  readonly counters: readonly Counter[];
  readonly reserveMicros: number;
}

export interface LimitRefusal extends Used {
  /** How long to wait until the call would pass, if nobody else calls; nothing where nobody can know. */
  readonly retryAfterMs: number | undefined;
}

/** What an admitted call holds until it is settled. */
export interface Lease {
  readonly counters: readonly Counter[];
  readonly month: string;
  readonly reserveMicros: number;
  /** Under whose name a shared store keeps it. */
  readonly holder?: string;
  /** Where calls are counted in memory first: settles when this one is on file. No answer leaves before. */
  readonly counted?: Promise<unknown>;
}

export type Admission =
  | { readonly ok: true; readonly lease: Lease; readonly used: readonly Used[] }
  | { readonly ok: false; readonly refusal: LimitRefusal; readonly used: readonly Used[] };

/** A share of a budget that was passed with this very call. */
export interface Crossing {
  readonly key: string;
  readonly rule: string;
  readonly percent: number;
  readonly spentMicros: number;
  readonly limitMicros: number;
}

/** Counters that book under these keys and refuse nothing. */
export function countersOf(budgets: readonly string[]): readonly Counter[] {
  const budget = { limit: Number.MAX_SAFE_INTEGER, rule: "" };
  return budgets.map((key) => ({ key, perMinute: undefined, perDay: undefined, concurrency: undefined, budget }));
}

/**
 * Counts calls and money for all servers that share it. What it cannot count it refuses: every method rejects with
 * `store_unavailable` when the store does not answer.
 */
export interface LimitStore {
  /** Takes a place under every counter, or none under any: at once where that can be known at once. */
  admit(request: AdmitRequest): Admission | Promise<Admission>;
  /** Gives the places back and books what the call has cost. */
  settle(lease: Lease, costMicros: number): Promise<readonly Crossing[]>;
  /** Books a cost for which nothing is held: that of a call whose server was killed. */
  charge(budgets: readonly string[], costMicros: number): Promise<void>;
  usage(counters: readonly Counter[]): Promise<readonly Used[]>;
  close(): Promise<void>;
}
