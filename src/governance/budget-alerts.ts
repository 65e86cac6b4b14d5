import type { Alerts } from "../telemetry/alerts.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Lease, Used } from "./store/governance-store.ts";
import { fromMicros, type Counter } from "./policy/terms.ts";
import type { Spending } from "./ledger/store.ts";

interface BudgetAlertsOptions {
  readonly logger: Logger;
  readonly alerts: Pick<Alerts, "send">;
}

/** Logs and alerts when a monthly budget passes a threshold, and when it is back below one. */
export class BudgetAlerts {
  readonly #options: BudgetAlertsOptions;
  readonly #told = new ToldBudgets();

  constructor(options: BudgetAlertsOptions) {
    this.#options = options;
  }

  /** The cost of a month only grows and one booking passes each threshold, so the process that booked it alerts once. */
  crossed(crossings: readonly Crossing[], month: string): void {
    const { logger, alerts } = this.#options;
    this.#told.add(crossings, month);
    for (const crossing of crossings) {
      const { rule, percent } = crossing;
      const facts = factsOf(crossing);
      logger.warning("budget threshold passed", facts);
      const severity = percent >= 100 ? "error" : "warning";
      const message = `${percent} % of a monthly budget is spent (${rule})`;
      alerts.send({ event: "budget_threshold", severity, message, facts });
    }
  }

  /** Checks the counts of a call under the policy in force for budgets that have recovered. */
  seen(lease: Lease | undefined, used: readonly Used[]): void {
    if (this.#told.isEmpty || lease === undefined) return;
    const { logger, alerts } = this.#options;
    for (const recovered of this.#told.takeRecovered(lease, used)) {
      const facts = factsOf(recovered);
      logger.info("budget threshold holds no longer", facts);
      const message = `less than ${recovered.percent} % of a monthly budget is spent again (${recovered.rule})`;
      alerts.send({ event: "budget_recovered", severity: "info", message, facts });
    }
  }
}

function factsOf({ key, rule, percent, spentMicros, limitMicros }: Crossing): Readonly<Record<string, unknown>> {
  return { of: key, rule, percent, spent: fromMicros(spentMicros), limit: fromMicros(limitMicros) };
}

interface Told {
  readonly percent: number;
  readonly month: string;
  readonly spentMicros: number;
}

/** The budget thresholds that this server has alerted about, until spend is below them again. */
export class ToldBudgets {
  readonly #told = new Map<string, Told>();

  get isEmpty(): boolean {
    return this.#told.size === 0;
  }

  add(crossings: readonly Crossing[], month: string): void {
    for (const { key, percent, spentMicros } of crossings) this.#told.set(key, { percent, month, spentMicros });
  }

  /**
   * Thresholds that a raised budget or a new month has put out of reach, judged by the counts of this call. Each is
   * returned once.
   */
  takeRecovered({ counters, month, reserveMicros }: Lease, used: readonly Used[]): readonly Crossing[] {
    const budgets = used.filter(({ name }) => name === "monthlyBudget");
    return counters
      .filter(({ budget }) => budget !== undefined)
      .flatMap(({ key }, index) => {
        const told = this.#told.get(key);
        const budget = budgets[index];
        if (told === undefined || budget === undefined || month < told.month) return [];
        const { rule, limit: limitMicros } = budget;
        // The counts of this call may be older than the alert. The spend of a month only grows, so the higher one is
        // right.
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

/** A budget threshold that one call has passed. */
export interface Crossing {
  readonly key: string;
  readonly rule: string;
  readonly percent: number;
  readonly spentMicros: number;
  readonly limitMicros: number;
}

const ALERT_PERCENTS = [50, 80, 100];

/** The thresholds between the spend before the call and the spend with it. */
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

/** The highest threshold that is passed; 0 below all of them. */
export function shareReached(limitMicros: number, spentMicros: number): number {
  return ALERT_PERCENTS.findLast((percent) => spentMicros >= (limitMicros * percent) / 100) ?? 0;
}
