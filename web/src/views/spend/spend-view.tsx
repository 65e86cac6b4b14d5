import type { JSX } from "preact";
import type { Spend } from "../../../../src/operator/contract.ts";
import { BarChart } from "../../parts/bar-chart.tsx";
import { countOf, dayOf, moneyOf } from "../../parts/format.ts";
import { Empty, Loading, Problem } from "../../parts/problem.tsx";
import { href, place } from "../../routing/router.ts";
import { useResource } from "../../server/use-resource.ts";
import { Page } from "../../shell/page.tsx";
import { BudgetList, NearLimitList } from "./budgets.tsx";
import { SpendTable } from "./spend-table.tsx";

const DAY_MS = 86_400_000;
const RANGES: Readonly<Record<string, string>> = { week: "7 days", month: "This month", quarter: "90 days" };

export function SpendView(): JSX.Element {
  const asked = place.value.query.get("range") ?? "";
  const range = Object.hasOwn(RANGES, asked) ? asked : "month";
  const spend = useResource<Spend>("spend", { range });
  return (
    <Page title="Spend and limits" actions={<RangeLinks current={range} />}>
      <Problem error={spend.error} onRetry={spend.reload} />
      {spend.data === undefined ? spend.isLoading ? <Loading what="spend" /> : null : <SpendBody spend={spend.data} />}
    </Page>
  );
}

function RangeLinks({ current }: { readonly current: string }): JSX.Element {
  return (
    <nav class="choice" aria-label="Range">
      {Object.entries(RANGES).map(([name, title]) => (
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

function SpendBody({ spend }: { readonly spend: Spend }): JSX.Element {
  const { from } = spend;
  return (
    <>
      <dl class="figures">
        <Figure name="Spent" value={moneyOf(spend.total.costMicros)} />
        <Figure name="Calls" value={countOf(spend.total.calls)} />
        <Figure name="Refused" value={countOf(spend.total.refused)} />
        <Figure name="Failed" value={countOf(spend.total.failed)} />
        <Figure name="Expected this month" value={moneyOf(spend.month.forecastMicros)} tone="expected" />
      </dl>
      <div class="columns">
        <BudgetList budgets={spend.budgets} />
        <NearLimitList limits={spend.nearLimits} />
      </div>
      <DayChart spend={spend} />
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

function DayChart({ spend }: { readonly spend: Spend }): JSX.Element {
  const byDay = new Map(spend.days.map((day) => [day.day.slice(0, 10), day]));
  const hasCosts = spend.total.costMicros > 0;
  const bars = daysOf(spend).map((day) => {
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
      <header class="section-head">
        <h2 id="days-title">{title}</h2>
        <span class="muted">{`days of ${spend.timeZone}`}</span>
      </header>
      <BarChart
        label={`${title}: ${bars.map((bar) => bar.title).join("; ")}`}
        bars={bars}
        format={hasCosts ? moneyOf : (value) => (Number.isInteger(value) ? countOf(value) : "")}
      />
    </section>
  );
}

function daysOf({ firstDay, today }: Spend): readonly string[] {
  const [firstMs, lastMs] = [Date.parse(firstDay), Date.parse(today)];
  return Array.from({ length: Math.max(1, Math.round((lastMs - firstMs) / DAY_MS) + 1) }, (_, index) =>
    new Date(firstMs + index * DAY_MS).toISOString().slice(0, 10),
  );
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly tone?: "expected";
}

function Figure({ name, value, tone }: FigureProps): JSX.Element {
  return (
    <div class={tone === undefined ? "figure" : `figure ${tone}`}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
