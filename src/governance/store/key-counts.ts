import { type Day } from "./calendar.ts";
import type { Cap, Counter } from "../policy/terms.ts";
import type { LimitRefusal, Used } from "./governance-store.ts";

export const WINDOW_MS = 60_000;

/** One moment of a transaction, in both clocks. */
export interface Moment {
  /** Never goes back; the sliding minute is measured by it. */
  readonly steadyMs: number;
  readonly wallMs: number;
  readonly day: Day;
}

/**
 * The counts of one key inside a transaction. Calls are numbered: the sliding minute holds those with a higher number
 * than the newest call that is older than a minute.
 */
export interface KeyCounts {
  readonly key: string;
  /** Number of the newest call. */
  last: number;
  readonly newestAtMs: number;
  /** Number of the newest call that is older than the window; 0 where there is none. */
  readonly expired: number;
  /** When the oldest call of the window arrived. */
  oldestAtMs: number | undefined;
  /** Set when the window holds more calls than the limit: when the call arrived that has to leave it first. */
  blockedByMs?: number | undefined;
  /** Includes the calls of later days: setting the clock back starts no new count. */
  dayCalls: number;
  /** Includes the costs of later months, for the same reason. */
  readonly spentMicros: number;
  reservedMicros: number;
  running: number;
  /** Admitted in this transaction. */
  addedCalls: number;
  addedMicros: number;
}

/** From the columns that both stores read, in this order. */
export function toKeyCounts(row: readonly unknown[]): KeyCounts {
  const [key, last, newestAtMs, expired, oldestAtMs, running, dayCalls, spentMicros, reservedMicros] = row;
  return {
    key: String(key),
    last: Number(last ?? 0),
    newestAtMs: Number(newestAtMs ?? 0),
    expired: Number(expired ?? 0),
    oldestAtMs: oldestAtMs === null ? undefined : Number(oldestAtMs),
    running: Number(running ?? 0),
    dayCalls: Number(dayCalls ?? 0),
    spentMicros: Number(spentMicros ?? 0),
    reservedMicros: Number(reservedMicros ?? 0),
    addedCalls: 0,
    addedMicros: 0,
  };
}

/** The first limit that one more call would pass, in the order minute, day, concurrency, budget. */
export function objectionOf(
  counts: KeyCounts,
  counter: Counter,
  { moment, reserveMicros }: { readonly moment: Moment; readonly reserveMicros: number },
): LimitRefusal | undefined {
  if (fits(counts, counter, reserveMicros)) return undefined;
  const used: Used[] = [];
  addUsed(used, { counts, counter, moment });
  for (const each of used) {
    if (each.name === "monthlyBudget") {
      if (reserveMicros > 0 && each.used + reserveMicros > each.limit)
        return { ...each, retryAfterMs: moment.day.monthEndsAtMs - moment.wallMs };
    } else if (each.used + 1 > each.limit) {
      return { ...each, retryAfterMs: waitFor(each, counts, moment) };
    }
  }
  return undefined;
}

function fits({ last, expired, dayCalls, running, ...money }: KeyCounts, counter: Counter, reserve: number): boolean {
  const { perMinute, perDay, concurrency, budget } = counter;
  if (perMinute !== undefined && last - expired + 1 > perMinute.limit) return false;
  if (perDay !== undefined && dayCalls + 1 > perDay.limit) return false;
  if (concurrency !== undefined && running + 1 > concurrency.limit) return false;
  return budget === undefined || reserve === 0 || money.spentMicros + money.reservedMicros + reserve <= budget.limit;
}

/** Counts a call that has passed every limit. */
export function addCall(
  counts: KeyCounts,
  counter: Counter,
  { moment, reserveMicros }: { readonly moment: Moment; readonly reserveMicros: number },
): void {
  counts.last += 1;
  counts.oldestAtMs ??= moment.steadyMs;
  counts.dayCalls += 1;
  counts.running += 1;
  counts.addedCalls += 1;
  if (counter.budget === undefined) return;
  counts.reservedMicros += reserveMicros;
  counts.addedMicros += reserveMicros;
}

/** Appends to a list, to save allocations: it runs for every counter of every call. */
export function addUsed(
  list: Used[],
  { counts, counter, moment }: { readonly counts: KeyCounts; readonly counter: Counter; readonly moment: Moment },
): void {
  const { perMinute, perDay, concurrency, budget } = counter;
  const { day, wallMs, steadyMs } = moment;
  if (perMinute !== undefined) {
    const { oldestAtMs } = counts;
    const resetsAtMs = oldestAtMs === undefined ? undefined : wallMs + oldestAtMs + WINDOW_MS - steadyMs;
    list.push(usedOf("callsPerMinute", perMinute, { used: counts.last - counts.expired, resetsAtMs }));
  }
  if (perDay !== undefined)
    list.push(usedOf("callsPerDay", perDay, { used: counts.dayCalls, resetsAtMs: day.endsAtMs }));
  if (concurrency !== undefined)
    list.push(usedOf("concurrency", concurrency, { used: counts.running, resetsAtMs: undefined }));
  if (budget !== undefined) {
    const used = counts.spentMicros + counts.reservedMicros;
    list.push(usedOf("monthlyBudget", budget, { used, resetsAtMs: day.monthEndsAtMs }));
  }
}

function usedOf(name: Used["name"], { limit, rule }: Cap, used: Pick<Used, "used" | "resetsAtMs">): Used {
  return { name, rule, limit, used: used.used, resetsAtMs: used.resetsAtMs };
}

function waitFor({ name, used, limit, resetsAtMs }: Used, counts: KeyCounts, moment: Moment): number | undefined {
  if (name === "callsPerDay") return resetsAtMs === undefined ? undefined : resetsAtMs - moment.wallMs;
  if (name !== "callsPerMinute") return undefined;
  const sinceMs = used > limit ? counts.blockedByMs : counts.oldestAtMs;
  return (sinceMs ?? moment.steadyMs) + WINDOW_MS - moment.steadyMs;
}
