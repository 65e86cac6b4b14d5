import type { Lease } from "./limits/limit-store.ts";

/** Money that is set aside for a call, and the keys of the budgets that pay it. */
export interface ReservedCost {
  readonly micros: number;
  readonly budgets: readonly string[];
}

export const NOTHING_RESERVED: ReservedCost = { micros: 0, budgets: [] };

export function reservedBy(lease: Lease | undefined): ReservedCost {
  if (lease === undefined || lease.reserveMicros === 0) return NOTHING_RESERVED;
  const budgets = lease.counters.flatMap(({ key, budget }) => (budget === undefined ? [] : [key]));
  return { micros: lease.reserveMicros, budgets };
}
