import type { Counter } from "../../policy/terms.ts";
import type { Day } from "../calendar.ts";
import { WINDOW_MS } from "../key-state.ts";
import type { Admission, Crossing, Lease, LimitName, LimitRefusal, Used } from "../limit-store.ts";
import { crossingsOf } from "../thresholds.ts";

/** When a batch was run, by the clock of the store. */
export interface BatchMoment {
  readonly wallMs: number;
  readonly steadyMs: number;
  readonly day: Day;
}

const FIELDS = 5;
const NAMES: readonly LimitName[] = ["callsPerMinute", "callsPerDay", "concurrency", "monthlyBudget"];

/** A counter as the script reads it. */
export function toWire({ key, perMinute, perDay, concurrency, budget }: Counter): readonly (string | number)[] {
  return [key, perMinute?.limit ?? -1, perDay?.limit ?? -1, concurrency?.limit ?? -1, budget?.limit ?? -1];
}

export function readAdmission(answer: readonly number[], lease: Lease, moment: BatchMoment): Admission {
  const [isAdmitted, index = 0, which = 0, waitMs = 0, ...seen] = answer;
  const used = readUsage(seen, lease.counters, moment);
  if (isAdmitted === 1) return { ok: true, lease, used };
  const counter = lease.counters[index];
  const name = NAMES[which];
  const found =
    counter === undefined
      ? undefined
      : readUsage(seen.slice(index * FIELDS), [counter], moment).find((each) => each.name === name);
  if (found === undefined) throw new TypeError("the store refused a call by a limit that it was not asked about");
  return { ok: false, refusal: refusalOf(found, waitMs, moment), used };
}

export function readUsage(seen: readonly number[], counters: readonly Counter[], moment: BatchMoment): Used[] {
  return counters.flatMap((counter, index) =>
    usedOf(counter, seen.slice(index * FIELDS, (index + 1) * FIELDS), moment),
  );
}

export function readCrossings(answer: readonly number[], { counters }: Lease, costMicros: number): Crossing[] {
  return counters
    .filter(({ budget }) => budget !== undefined)
    .flatMap((counter, index) => {
      const after = answer[index] ?? -1;
      return after < 0 ? [] : crossingsOf(counter, after - costMicros, after);
    });
}

function usedOf(
  { perMinute, perDay, concurrency, budget }: Counter,
  [inWindow = 0, firstAt = -1, today = 0, running = 0, micros = 0]: readonly number[],
  { wallMs, steadyMs, day }: BatchMoment,
): Used[] {
  const used: Used[] = [];
  const firstLeavesAtMs = firstAt < 0 ? undefined : wallMs + firstAt + WINDOW_MS - steadyMs;
  if (perMinute !== undefined)
    used.push({ name: "callsPerMinute", ...perMinute, used: inWindow, resetsAtMs: firstLeavesAtMs });
  if (perDay !== undefined) used.push({ name: "callsPerDay", ...perDay, used: today, resetsAtMs: day.endsAtMs });
  if (concurrency !== undefined)
    used.push({ name: "concurrency", ...concurrency, used: running, resetsAtMs: undefined });
  if (budget !== undefined)
    used.push({ name: "monthlyBudget", ...budget, used: micros, resetsAtMs: day.monthEndsAtMs });
  return used;
}

function refusalOf(used: Used, waitMs: number, { wallMs }: BatchMoment): LimitRefusal {
  if (used.name === "callsPerMinute") return { ...used, retryAfterMs: waitMs };
  return { ...used, retryAfterMs: used.resetsAtMs === undefined ? undefined : used.resetsAtMs - wallMs };
}
