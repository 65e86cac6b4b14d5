import type { DeepReadonly } from "../../config/deep-freeze.ts";
import type { ToolConfig } from "../../config/governance-schema.ts";
import type { Subject, SubjectPrice } from "../subject.ts";
import { type Pattern, toPattern } from "./pattern.ts";
import { type Cap, type Confirmation, type Counter, stricter, toMicros } from "./terms.ts";
import { joinCaps } from "./layer.ts";

/** One entry of `tools`. */
export interface ToolEntry {
  readonly id: string;
  readonly pattern: Pattern;
  readonly config: DeepReadonly<ToolConfig>;
}

export function toToolEntry(glob: string, config: DeepReadonly<ToolConfig>): ToolEntry {
  return { id: `tools.${glob}`, pattern: toPattern(glob), config };
}

export function toolConfirmation(entries: readonly ToolEntry[], { confirm }: Subject): Confirmation | undefined {
  const ofAuthor: Confirmation | undefined =
    confirm === undefined ? undefined : { by: confirm, rule: "tool.confirm", reason: undefined };
  return entries
    .map(({ id, config }): Confirmation | undefined =>
      config.confirm === undefined ? undefined : { by: config.confirm, rule: `${id}.confirm`, reason: undefined },
    )
    .reduce<Confirmation | undefined>(stricter, ofAuthor);
}

export function toolCounter(key: string, entries: readonly ToolEntry[]): Counter {
  const caps = entries.map(({ id, config }) => ({
    perMinute: cap(`${id}.callsPerMinute`, config.callsPerMinute),
    perDay: cap(`${id}.callsPerDay`, config.callsPerDay),
    concurrency: cap(`${id}.concurrency`, config.concurrency),
    budget: undefined,
  }));
  return joinCaps(key, caps);
}

/** The operator's price replaces the author's. Of several entries, the highest price counts. */
export function priceOf(entries: readonly ToolEntry[], price: SubjectPrice): SubjectPrice {
  const costs = entries.flatMap(({ config: { cost } }) => (cost === undefined ? [] : [cost]));
  const maxima = entries.flatMap(({ config: { maxCost } }) => (maxCost === undefined ? [] : [maxCost]));
  const max = maxima.length === 0 ? price.max : Math.max(...maxima);
  if (costs.length === 0) return { ...price, max };
  const full = costs.map((cost) => {
    const { fixed = 0, perSecond = 0, perEgressMb = 0 } = typeof cost === "number" ? { fixed: cost } : cost;
    return { fixed, perSecond, perEgressMb };
  });
  return {
    fixed: Math.max(...full.map(({ fixed }) => fixed)),
    perSecond: Math.max(...full.map(({ perSecond }) => perSecond)),
    perEgressMb: Math.max(...full.map(({ perEgressMb }) => perEgressMb)),
    max,
  };
}

/** A call that can cost anything reserves at least this, so that it is refused when the budget is used up. */
const LEAST_MICROS = 1;

/** The most that a call can cost, as far as it is known before the call runs. */
export function reserveOf(price: SubjectPrice, { timeoutMs, mayCharge }: Subject): number {
  const { fixed, perSecond, perEgressMb, max } = price;
  const known = toMicros(max ?? fixed + (perSecond * timeoutMs) / 1000);
  const isPriced = fixed > 0 || perSecond > 0 || perEgressMb > 0;
  // A maximum of 0 declares that the code will report no cost.
  const isFree = !isPriced && (max === undefined ? mayCharge !== true : max === 0);
  return isFree ? 0 : Math.max(LEAST_MICROS, known);
}

/** Whether a part of its cost has no upper bound: traffic, or what the author's code reports. */
export function isOpenEnded({ perEgressMb, max }: SubjectPrice, { mayCharge }: Subject): boolean {
  return max === undefined && (perEgressMb > 0 || mayCharge === true);
}

function cap(rule: string, limit: number | undefined): Cap | undefined {
  return limit === undefined || limit === 0 ? undefined : { limit, rule };
}
