import type { SpendMemory } from "./spend-memory.ts";

/** Where several servers count together: it runs one batch after another, each whole or not at all, by its own clock. */
export interface LimitEngine {
  /** Stands before the names of everything that is counted. */
  readonly space: string;
  /** Whether it makes sense to ask. */
  readonly isReady: boolean;
  /** What rejects may or may not have been run. */
  run(batch: string): Promise<unknown>;
  /** These holders hold nothing any more. */
  forget(space: string, holders: readonly string[]): Promise<void>;
  /** Where what was spent outlives it; nothing when it keeps that for itself. */
  memoryOf?(space: string, leaseMs: number): SpendMemory;
  /** Calls back when it stands again after it was lost, where it can tell. */
  onReturn(listener: () => void): void;
}
