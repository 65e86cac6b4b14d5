import type { JSX } from "preact";
import type { BudgetState, NearLimit } from "../../../../src/operator/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { countOf, moneyOf, visibleText } from "../../parts/format.ts";
import { Meter } from "../../parts/meter.tsx";
import { Empty } from "../../parts/problem.tsx";
import { href } from "../../routing/router.ts";

const LIMIT_WORDS = {
  per_minute: "calls in a minute",
  per_day: "calls in a day",
  concurrency: "calls at once",
  budget: "budget of the month",
};

export function BudgetList({ budgets }: { readonly budgets: readonly BudgetState[] }): JSX.Element {
  return (
    <section aria-labelledby="budgets-title">
      <h2 id="budgets-title">Budgets of this month</h2>
      {budgets.length === 0 ? (
        <Empty title="No client has a budget.">The policy sets them.</Empty>
      ) : (
        <ul class="budgets">
          {budgets.map((budget) => (
            <li key={budget.client}>
              <Budget budget={budget} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Budget({
  budget: { client, usedMicros, limitMicros, forecastMicros },
}: {
  readonly budget: BudgetState;
}): JSX.Element {
  const words = `${moneyOf(usedMicros)} of ${moneyOf(limitMicros)}`;
  const willExceed = forecastMicros > limitMicros;
  return (
    <>
      <div class="budget-line">
        <a href={href(["policy"], { client })}>{visibleText(client)}</a>
        <span class="num">{words}</span>
      </div>
      <Meter
        label={`${client}: ${words}, ${moneyOf(forecastMicros)} expected at the end of the month`}
        used={usedMicros}
        most={limitMicros}
        forecast={forecastMicros}
      />
      <p class={willExceed ? "warn-text" : "muted"}>
        {`${moneyOf(forecastMicros)} expected at the end of the month`}
        {willExceed ? ": over the budget" : ""}
      </p>
    </>
  );
}

export function NearLimitList({ limits }: { readonly limits: readonly NearLimit[] }): JSX.Element {
  return (
    <section aria-labelledby="limits-title">
      <h2 id="limits-title">Near a limit</h2>
      {limits.length === 0 ? (
        <Empty title="Nobody is near a limit." />
      ) : (
        <ul class="budgets">
          {limits.map(({ client, limit, used, most }) => {
            const amount = limit === "budget" ? moneyOf : countOf;
            const words = `${amount(used)} of ${amount(most)} ${LIMIT_WORDS[limit]}`;
            return (
              <li key={`${client} ${limit}`}>
                <div class="budget-line">
                  <a href={href(["policy"], { client })}>{visibleText(client)}</a>
                  <span class="num">
                    {words} {used >= most ? <Badge text="reached" tone="bad" /> : null}
                  </span>
                </div>
                <Meter label={`${client}: ${words}`} used={used} most={most} />
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
