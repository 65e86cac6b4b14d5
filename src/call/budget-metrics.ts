import type { Governor } from "../governance/governor.ts";
import type { Used } from "../governance/store/governance-store.ts";
import type { LedgerEntry } from "../governance/ledger/ledger.ts";
import type { Call, Caller } from "./call.ts";
import type { CallObserver, FinishedCall } from "./governed-work.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";

const MAX_REMEMBERED = 200;

/**
 * Remembers the callers that had costs. When the metrics are read, it asks the store how much of their budgets is used,
 * since other servers book costs too.
 */
export class BudgetMetrics implements CallObserver {
  readonly #metrics: Metrics;
  readonly #governor: Pick<Governor, "usage">;
  readonly #payers = new Map<string, Pick<Caller, "principal" | "label">>();

  constructor(metrics: Metrics, governor: Pick<Governor, "usage">) {
    this.#metrics = metrics;
    this.#governor = governor;
    metrics.onRead(() => this.#look());
  }

  finished({ entry, call }: FinishedCall): void {
    this.ranOn(entry, call);
  }

  ranOn({ costMicros }: LedgerEntry, { caller }: Call): void {
    if (costMicros === 0) return;
    const { principal, label } = caller;
    const key = `${principal.id}\n${label ?? ""}`;
    if (this.#payers.has(key)) return;
    const [oldest] = this.#payers.keys();
    if (this.#payers.size >= MAX_REMEMBERED && oldest !== undefined) this.#payers.delete(oldest);
    this.#payers.set(key, { principal, label });
  }

  async #look(): Promise<void> {
    const shares = new Map<string, number>();
    for (const { name, rule, limit, used } of await this.#usage()) {
      const share = limit > 0 ? used / limit : 1;
      if (name === "monthlyBudget") shares.set(rule, Math.max(shares.get(rule) ?? 0, share));
    }
    this.#metrics.budgetUsed.clear();
    for (const [rule, share] of shares) this.#metrics.budgetUsed.set([rule], share);
  }

  /** A store that does not answer is reported by its health check. */
  async #usage(): Promise<readonly Used[]> {
    const asked = [...this.#payers.values()].map((payer) => this.#governor.usage(payer));
    return (await Promise.allSettled(asked)).flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  }
}
