import type { Lease } from "../limit-store.ts";

/** What a call has cost under one key. */
export interface Spend {
  readonly key: string;
  readonly month: string;
  readonly micros: number;
}

/**
 * What was spent, on file beside an engine that may lose its memory. Each memory of the engine has a name, its epoch: it
 * begins with all that was on file by then, and what is put on file later names the epoch that has to count it too.
 */
export interface SpendMemory {
  /** This server, among those that say what they hold when a memory begins. */
  readonly member: string;
  /** The memory that this server counts in; empty before the first. */
  readonly epoch: string;
  /** Finds the memory that others have begun, or begins one. @param isStale Whether the present one has lost something. */
  recover(options: { readonly isStale: boolean }): Promise<void>;
  /**
   * Puts it on file. Rejects when that did not work now: it is tried again, and `onPaid` hears of it in any case.
   * @param onPaid Is told in which epoch it was, and waited for.
   */
  pay(spends: readonly Spend[], onPaid: (epoch: string) => Promise<void>): Promise<void>;
  /** What is being put on file at the moment is there, or has failed. */
  paid(): Promise<void>;
  /** Nobody waits for this server any more. */
  leave(): Promise<void>;
}

/** Under each key that has a budget. */
export function spendsOf({ counters, month }: Lease, micros: number): readonly Spend[] {
  if (micros === 0) return [];
  return counters.filter(({ budget }) => budget !== undefined).map(({ key }) => ({ key, month, micros }));
}
