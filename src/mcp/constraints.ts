import type { Terms } from "../governance/policy/terms.ts";
import { fromMicros } from "../governance/policy/terms.ts";

export const CONSTRAINTS_META_KEY = "owlclaw/constraints";

/** What the policy holds against every call of a tool, for clients that plan ahead. Without anything, nothing. */
export function constraintsOf({ counters, price, reserveMicros, maxCost, confirm }: Terms): Record<string, unknown> {
  const lowest = (pick: (counter: Terms["counters"][number]) => number | undefined): number | undefined => {
    const limits = counters.map(pick).filter((limit) => limit !== undefined);
    return limits.length === 0 ? undefined : Math.min(...limits);
  };
  const budget = lowest((counter) => counter.budget?.limit);
  const { fixed, perSecond, perEgressMb, max = 0 } = price;
  const isFree = fixed === 0 && perSecond === 0 && perEgressMb === 0 && max === 0;
  return withoutUndefined({
    calls_per_minute: lowest(({ perMinute }) => perMinute?.limit),
    calls_per_day: lowest(({ perDay }) => perDay?.limit),
    concurrency: lowest(({ concurrency }) => concurrency?.limit),
    monthly_budget: budget === undefined ? undefined : fromMicros(budget),
    max_cost_per_call: maxCost === undefined ? undefined : fromMicros(maxCost.limit),
    cost: isFree
      ? undefined
      : { fixed, per_second: perSecond, per_egress_mb: perEgressMb, reserved: fromMicros(reserveMicros) },
    confirm: confirm?.by,
  });
}

function withoutUndefined(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
