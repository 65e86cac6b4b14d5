import type { Lease, Used } from "./store/governance-store.ts";
import { type Crossing, shareReached } from "./store/thresholds.ts";

interface Told {
  readonly percent: number;
  readonly month: string;
  readonly spentMicros: number;
}

/** The shares of budgets that this server has told of, until they hold no longer. */
export class ToldBudgets {
  readonly #told = new Map<string, Told>();

  get isEmpty(): boolean {
    return this.#told.size === 0;
  }

  add(crossings: readonly Crossing[], month: string): void {
    for (const { key, percent, spentMicros } of crossings) this.#told.set(key, { percent, month, spentMicros });
  }

  /** Those that a raised budget or a new month has undone, seen by a call's own numbers; each once. */
  takeRecovered({ counters, month, reserveMicros }: Lease, used: readonly Used[]): readonly Crossing[] {
    const budgets = used.filter(({ name }) => name === "monthlyBudget");
    return counters
      .filter(({ budget }) => budget !== undefined)
      .flatMap(({ key }, index) => {
        const told = this.#told.get(key);
        const budget = budgets[index];
        if (told === undefined || budget === undefined || month < told.month) return [];
        const { rule, limit: limitMicros } = budget;
        // The call may be older than what was told. What a month has cost only grows.
        const leastMicros = month === told.month ? told.spentMicros : 0;
        const spentMicros = Math.max(leastMicros, budget.used - reserveMicros);
        const percent = shareReached(limitMicros, spentMicros);
        if (percent >= told.percent) return [];
        if (percent === 0) this.#told.delete(key);
        else this.#told.set(key, { percent, month, spentMicros });
        return [{ key, rule, percent: told.percent, spentMicros, limitMicros }];
      });
  }
}
