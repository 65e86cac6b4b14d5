import type { Governor } from "../governance/governor.ts";
import { Calendar } from "../governance/limits/calendar.ts";
import type { LimitName, Used } from "../governance/limits/limit-store.ts";
import type { LedgerCount } from "../ledger/query.ts";
import type { LedgerReader } from "../ledger/store.ts";
import type { ApiRoute } from "./api.ts";
import type { BudgetState, NearLimit, Spend, SpendCount } from "./contract.ts";
import { timeOf } from "./query-values.ts";

export interface SpendSources {
  readonly reader: Pick<LedgerReader, "stats">;
  readonly governor: Governor;
  /** Where days and months begin. */
  readonly timeZone: () => string;
}

/** Those who call most; for all the others the question costs more than its answer is worth. */
const MAX_ASKED = 100;
const NEAR = 0.8;
/** A month and a little; all that ever was takes seconds to count. */
const USUAL_MS = 35 * 86_400_000;

const LIMITS: Readonly<Record<LimitName, NearLimit["limit"]>> = {
  callsPerMinute: "per_minute",
  callsPerDay: "per_day",
  concurrency: "concurrency",
  monthlyBudget: "budget",
};

interface ClientUse {
  readonly client: string;
  readonly used: readonly Used[];
}

/** `spend`: what was spent, what may be, and who is near the end of it. */
export function spendRoutes(sources: SpendSources): readonly ApiRoute[] {
  return [{ method: "GET", path: "spend", answer: async ({ query }) => ({ ...(await spendOf(sources, query)) }) }];
}

async function spendOf({ reader, governor, timeZone }: SpendSources, query: URLSearchParams): Promise<Spend> {
  const [fromMs = Date.now() - USUAL_MS, toMs] = [timeOf(query, "from"), timeOf(query, "to")];
  const range = { fromMs, ...(toMs !== undefined && { toMs }) };
  const { total, clients, tools, days } = await reader.stats(range);
  const uses: ClientUse[] = [];
  for (const { client } of clients.slice(0, MAX_ASKED)) {
    const principal = { id: client, scopes: [], claims: {} };
    uses.push({ client, used: await governor.usage({ principal, label: undefined }) });
  }
  const month = monthPart(timeZone(), Date.now());
  return {
    total: toSpend(total),
    clients: clients.map(({ client, ...count }) => ({ client, ...toSpend(count) })),
    tools: tools.map(({ tool, ...count }) => ({ tool, ...toSpend(count) })),
    days: days.map(({ day, ...count }) => ({ day, ...toSpend(count) })),
    budgets: uses.flatMap((use) => budgetsOf(use, month)),
    nearLimits: uses.flatMap(nearLimitsOf),
  };
}

function budgetsOf({ client, used }: ClientUse, month: number): BudgetState[] {
  return used
    .filter(({ name }) => name === "monthlyBudget")
    .map(({ limit, used: taken }) => ({
      client,
      usedMicros: taken,
      limitMicros: limit,
      forecastMicros: Math.round(taken / month),
    }));
}

function nearLimitsOf({ client, used }: ClientUse): NearLimit[] {
  return used
    .filter(({ limit, used: taken }) => limit > 0 && taken >= limit * NEAR)
    .map(({ name, limit, used: taken }) => ({ client, limit: LIMITS[name], used: taken, most: limit }));
}

/** How much of the month is over, at least an hour of it: a forecast from minutes would be a rumour. */
function monthPart(timeZone: string, nowMs: number): number {
  const { monthEndsAtMs, month } = new Calendar(timeZone).at(nowMs);
  const [year = 0, number = 1] = month.split("-").map(Number);
  const monthMs = new Date(Date.UTC(year, number, 0)).getUTCDate() * 86_400_000;
  return Math.min(1, Math.max(3_600_000, monthMs - (monthEndsAtMs - nowMs)) / monthMs);
}

function toSpend({ calls, refused, failed, costMicros }: LedgerCount): SpendCount {
  return { calls, refused, failed, costMicros };
}
