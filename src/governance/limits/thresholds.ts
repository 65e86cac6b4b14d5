import type { Counter } from "../policy/terms.ts";
import type { Crossing } from "./limit-store.ts";

const ALERT_PERCENTS = [50, 80, 100];

/** The shares of the budget that lie between what was spent before and what is spent now. */
export function crossingsOf({ key, budget }: Counter, beforeMicros: number, afterMicros: number): Crossing[] {
  if (budget === undefined) return [];
  const { limit: limitMicros, rule } = budget;
  const crossings: Crossing[] = [];
  for (const percent of ALERT_PERCENTS) {
    const line = (limitMicros * percent) / 100;
    if (beforeMicros < line && afterMicros >= line)
      crossings.push({ key, rule, percent, spentMicros: afterMicros, limitMicros });
  }
  return crossings;
}

/** The highest share that is spent; 0 below all of them. */
export function shareReached(limitMicros: number, spentMicros: number): number {
  return ALERT_PERCENTS.findLast((percent) => spentMicros >= (limitMicros * percent) / 100) ?? 0;
}
