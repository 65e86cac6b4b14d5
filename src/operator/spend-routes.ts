import type { Governor } from "../governance/governor.ts";
import type { LimitName, Used } from "../governance/store/governance-store.ts";
import type { LedgerCount, LedgerStats } from "../governance/ledger/query.ts";
import type { LedgerReader } from "../governance/ledger/store.ts";
import type { ApiRoute } from "./api.ts";
import type { BudgetState, NearLimit, Spend, SpendCount } from "./contract.ts";
import { LocalDays } from "./local-days.ts";
import { timeOf } from "./request-body.ts";

export interface SpendSources {
  readonly reader: Pick<LedgerReader, "stats">;
  readonly governor: Governor;
  /** The time zone of days and months. */
  readonly timeZone: () => string;
  /** The clients that the policy names: they have a budget before their first call. */
  readonly namedClients: () => readonly string[];
}

/** The number of clients with the most calls whose limits are checked. Checking all clients would take too long. */
const MAX_ASKED = 100;
const NEAR = 0.8;
/** A little more than a month. Counting the whole ledger takes seconds. */
const USUAL_MS = 35 * 86_400_000;

const RANGE_DAYS: Readonly<Record<string, number>> = { week: 7, quarter: 90 };

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

/** `spend`: costs, budgets, and clients that are close to a limit. */
export function spendRoutes(sources: SpendSources): readonly ApiRoute[] {
  return [{ method: "GET", path: "spend", answer: async ({ query }) => ({ ...(await spendOf(sources, query)) }) }];
}

async function spendOf(sources: SpendSources, query: URLSearchParams): Promise<Spend> {
  const { reader, timeZone } = sources;
  const nowMs = Date.now();
  const days = new LocalDays(timeZone());
  const fromMs = startOf(query, days, nowMs);
  const toMs = timeOf(query, "to");
  const shown = await reader.stats(
    { fromMs, ...(toMs !== undefined && { toMs }) },
    days.shifts(fromMs, Math.max(fromMs, toMs ?? nowMs)),
  );
  const monthStartMs = days.monthStartMs(nowMs);
  const isMonth = fromMs === monthStartMs && toMs === undefined;
  const ofMonth = isMonth ? shown : await reader.stats({ fromMs: monthStartMs });
  const uses = await usesOf(sources, ofMonth);
  const part = days.monthPart(nowMs);
  const usedMicros = ofMonth.total.costMicros;
  return {
    timeZone: days.timeZone,
    from: new Date(fromMs).toISOString(),
    firstDay: days.dayAt(fromMs),
    today: days.dayAt(nowMs),
    total: toSpend(shown.total),
    clients: shown.clients.map(({ client, ...count }) => ({ client, ...toSpend(count) })),
    tools: shown.tools.map(({ tool, ...count }) => ({ tool, ...toSpend(count) })),
    days: shown.days.map(({ day, ...count }) => ({ day, ...toSpend(count) })),
    month: { usedMicros, forecastMicros: forecastOf(usedMicros, part) },
    budgets: uses.flatMap((use) => budgetsOf(use, part)),
    nearLimits: uses.flatMap(nearLimitsOf),
  };
}

/** `range` begins at the start of a day in the time zone of the policy. `from` is for other times. */
function startOf(query: URLSearchParams, days: LocalDays, nowMs: number): number {
  const range = query.get("range") ?? "";
  const lastDays = RANGE_DAYS[range];
  if (lastDays !== undefined) return days.startOfLastMs(lastDays, nowMs);
  return range === "month" ? days.monthStartMs(nowMs) : (timeOf(query, "from") ?? nowMs - USUAL_MS);
}

function forecastOf(usedMicros: number, part: number): number {
  return Math.round(usedMicros / part);
}

/** Budgets are monthly, whatever range is shown. */
async function usesOf({ governor, namedClients }: SpendSources, ofMonth: LedgerStats): Promise<readonly ClientUse[]> {
  const called = ofMonth.clients.map(({ client }) => client).slice(0, MAX_ASKED);
  const uses: ClientUse[] = [];
  for (const client of new Set([...called, ...namedClients().slice(0, MAX_ASKED)])) {
    const principal = { id: client, scopes: [], claims: {} };
    uses.push({ client, used: await governor.usage({ principal, label: undefined }) });
  }
  return uses;
}

function budgetsOf({ client, used }: ClientUse, monthPart: number): BudgetState[] {
  return used
    .filter(({ name }) => name === "monthlyBudget")
    .map(({ limit, used: taken }) => ({
      client,
      usedMicros: taken,
      limitMicros: limit,
      forecastMicros: forecastOf(taken, monthPart),
    }));
}

function nearLimitsOf({ client, used }: ClientUse): NearLimit[] {
  return used
    .filter(({ limit, used: taken }) => limit > 0 && taken >= limit * NEAR)
    .map(({ name, limit, used: taken }) => ({ client, limit: LIMITS[name], used: taken, most: limit }));
}

function toSpend({ calls, refused, failed, costMicros }: LedgerCount): SpendCount {
  return { calls, refused, failed, costMicros };
}
