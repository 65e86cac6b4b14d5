import type { Spending } from "../ledger/store.ts";
import type { Counter } from "../policy/terms.ts";

/** A share of a budget that was passed with one call. */
export interface Crossing {
  readonly key: string;
  readonly rule: string;
  readonly percent: number;
  readonly spentMicros: number;
  readonly limitMicros: number;
}

const ALERT_PERCENTS = [50, 80, 100];

/** The shares of the budgets that lie between what was spent before the call and what is spent with it. */
export function crossingsOf(counters: readonly Counter[], spendings: readonly Spending[]): readonly Crossing[] {
  return spendings.flatMap(({ key, beforeMicros, afterMicros }) => {
    const budget = counters.find((counter) => counter.key === key)?.budget;
    if (budget === undefined) return [];
    const { limit: limitMicros, rule } = budget;
    const passed = ALERT_PERCENTS.filter((percent) => {
      const line = (limitMicros * percent) / 100;
      return beforeMicros < line && afterMicros >= line;
    });
    return passed.map((percent) => ({ key, rule, percent, spentMicros: afterMicros, limitMicros }));
  });
}

/** The highest share that is spent; 0 below all of them. */
export function shareReached(limitMicros: number, spentMicros: number): number {
  return ALERT_PERCENTS.findLast((percent) => spentMicros >= (limitMicros * percent) / 100) ?? 0;
}
