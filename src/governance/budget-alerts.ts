import type { Alerts } from "../telemetry/alerts.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Lease, Used } from "./store/governance-store.ts";
import type { Crossing } from "./store/thresholds.ts";
import { fromMicros } from "./policy/terms.ts";
import { ToldBudgets } from "./told-budgets.ts";

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

  /** What a call under the policy in force found. */
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
