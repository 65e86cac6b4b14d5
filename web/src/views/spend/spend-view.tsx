import type { JSX } from "preact";
import type { Spend } from "../../../../src/dashboard/contract.ts";
import { BarChart } from "../../parts/bar-chart.tsx";
import { countOf, dayOf, moneyOf } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { href, place } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { Page } from "../../shell/page.tsx";
import { BudgetList, NearLimitList } from "./budgets.tsx";
import { SpendTable } from "./spend-table.tsx";

const DAY_MS = 86_400_000;
const RANGES: Readonly<Record<string, { readonly title: string; readonly days: number | "month" }>> = {
  week: { title: "7 days", days: 7 },
  month: { title: "This month", days: "month" },
  quarter: { title: "90 days", days: 90 },
};

export function SpendView(): JSX.Element {
  const range = place.value.query.get("range") ?? "month";
  const spend = useResource<Spend>("spend", { from: startOf(range) });
  return (
    <Page title="Spend and limits" actions={<RangeLinks current={range} />}>
      <Problem error={spend.error} onRetry={spend.reload} />
      {spend.data === undefined ? (
        spend.isLoading ? (
          <Loading what="spend" />
        ) : null
      ) : (
        <SpendBody spend={spend.data} from={startOf(range)} />
      )}
    </Page>
  );
}

function startOf(range: string): string {
  const days = RANGES[range]?.days ?? "month";
  const today = new Date();
  today.setUTCHours(0, 0, 0, 0);
  if (days === "month") today.setUTCDate(1);
  else today.setTime(today.getTime() - (days - 1) * DAY_MS);
  return today.toISOString();
}

function RangeLinks({ current }: { readonly current: string }): JSX.Element {
  return (
    <nav class="choice" aria-label="Range">
      {Object.entries(RANGES).map(([name, { title }]) => (
        <a
          key={name}
          class="button"
          href={href(["spend"], { range: name })}
          aria-current={name === current ? "true" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

function SpendBody({ spend, from }: { readonly spend: Spend; readonly from: string }): JSX.Element {
  return (
    <>
      <dl class="figures">
        <Figure name="Spent" value={moneyOf(spend.total.costMicros)} />
        <Figure name="Calls" value={countOf(spend.total.calls)} />
        <Figure name="Refused" value={countOf(spend.total.refused)} />
        <Figure name="Failed" value={countOf(spend.total.failed)} />
      </dl>
      <div class="columns">
        <BudgetList budgets={spend.budgets} />
        <NearLimitList limits={spend.nearLimits} />
      </div>
      <DayChart spend={spend} from={from} />
      {spend.total.calls === 0 ? (
        <Empty title="Nothing was called in this time." />
      ) : (
        <div class="columns">
          <SpendTable
            title="By client"
            filter="client"
            from={from}
            rows={spend.clients.map(({ client, ...counts }) => ({ name: client, ...counts }))}
          />
          <SpendTable
            title="By tool"
            filter="tool"
            from={from}
            rows={spend.tools.map(({ tool, ...counts }) => ({ name: tool, ...counts }))}
          />
        </div>
      )}
    </>
  );
}

function DayChart({ spend, from }: { readonly spend: Spend; readonly from: string }): JSX.Element {
  const byDay = new Map(spend.days.map((day) => [day.day.slice(0, 10), day]));
  const hasCosts = spend.total.costMicros > 0;
  const bars = daysSince(from).map((day) => {
    const { costMicros = 0, calls = 0, refused = 0, failed = 0 } = byDay.get(day) ?? {};
    return {
      key: day,
      label: dayOf(day),
      title: `${dayOf(day)}: ${moneyOf(costMicros)} for ${countOf(calls)} calls, ${countOf(refused)} refused, ${countOf(failed)} failed`,
      parts: [{ tone: "main" as const, value: hasCosts ? costMicros : calls }],
    };
  });
  const title = hasCosts ? "Spent by day" : "Calls by day";
  return (
    <section aria-labelledby="days-title">
      <h2 id="days-title">{title}</h2>
      <BarChart
        label={`${title}: ${bars.map((bar) => bar.title).join("; ")}`}
        bars={bars}
        format={hasCosts ? moneyOf : (value) => (Number.isInteger(value) ? countOf(value) : "")}
      />
    </section>
  );
}

function daysSince(from: string): readonly string[] {
  const count = Math.floor((Date.now() - Date.parse(from)) / DAY_MS) + 1;
  return Array.from({ length: Math.max(count, 1) }, (_, index) =>
    new Date(Date.parse(from) + index * DAY_MS).toISOString().slice(0, 10),
  );
}

function Figure({ name, value }: { readonly name: string; readonly value: string }): JSX.Element {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
