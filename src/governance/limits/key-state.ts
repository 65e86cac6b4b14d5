import type { Cap, Counter } from "../policy/terms.ts";
import type { Day } from "./calendar.ts";
import type { CallCount } from "./counts.ts";
import type { LimitRefusal, Used } from "./limit-store.ts";

export const WINDOW_MS = 60_000;

/** One moment of the store's transaction, in both clocks. */
export interface Moment {
  readonly steadyMs: number;
  readonly wallMs: number;
  readonly day: Day;
}

/** Calls that came in the same millisecond. */
export interface Chunk {
  readonly at: number;
  n: number;
}

/** What is known of one key inside a transaction: its last minute, its day, its month, and what runs. */
export interface KeyState {
  readonly key: string;
  readonly chunks: Chunk[];
  /** Of the chunks, the first that counts. */
  first: number;
  inWindow: number;
  day: string;
  dayCount: number;
  month: string;
  spentMicros: number;
  /** What other processes hold. */
  othersRunning: number;
  othersReservedMicros: number;
  /** What has come and is not on file yet. */
  uncounted: CallCount[];
}

/** What this process holds under one key. */
export interface Held {
  running: number;
  readonly reservedMicros: Map<string, number>;
  /** Whether the file says anything of it. */
  isStored: boolean;
}

export function forgetExpired(state: KeyState, steadyMs: number): void {
  const { chunks } = state;
  for (let chunk = chunks[state.first]; chunk !== undefined; chunk = chunks[state.first]) {
    if (chunk.at > steadyMs - WINDOW_MS) break;
    state.inWindow -= chunk.n;
    state.first += 1;
  }
  // A busy minute has tens of thousands, and taking out the first moves all the others: only when half of them are over.
  if (state.first * 2 <= chunks.length) return;
  chunks.splice(0, state.first);
  state.first = 0;
}

export function addCall(state: KeyState, steadyMs: number): void {
  const { key, chunks, uncounted, day } = state;
  const last = chunks.at(-1);
  if (last !== undefined && last.at === steadyMs) last.n += 1;
  else chunks.push({ at: steadyMs, n: 1 });
  const lastUncounted = uncounted.at(-1);
  if (lastUncounted !== undefined && lastUncounted.at === steadyMs && lastUncounted.day === day) lastUncounted.n += 1;
  else uncounted.push({ key, day, at: steadyMs, n: 1 });
  state.inWindow += 1;
  state.dayCount += 1;
}

interface Question {
  readonly state: KeyState;
  readonly held: Held;
  readonly counter: Counter;
  readonly moment: Moment;
}

/** The first cap that one more call would pass, in the order minute, day, at a time, money. */
export function objectionOf(question: Question, reserveMicros: number): LimitRefusal | undefined {
  if (fits(question, reserveMicros)) return undefined;
  const { state, counter, moment } = question;
  const used: Used[] = [];
  addUsed(used, question);
  for (const each of used) {
    if (each.name === "monthlyBudget") {
      if (reserveMicros > 0 && each.used + reserveMicros > each.limit)
        return { ...each, retryAfterMs: moment.day.monthEndsAtMs - moment.wallMs };
    } else if (each.used + 1 > each.limit) {
      return { ...each, retryAfterMs: waitFor(each, state, counter, moment) };
    }
  }
  return undefined;
}

function fits({ state, held, counter }: Question, reserveMicros: number): boolean {
  const { perMinute, perDay, concurrency, budget } = counter;
  if (perMinute !== undefined && state.inWindow + 1 > perMinute.limit) return false;
  if (perDay !== undefined && state.dayCount + 1 > perDay.limit) return false;
  if (concurrency !== undefined && state.othersRunning + held.running + 1 > concurrency.limit) return false;
  if (budget === undefined || reserveMicros === 0) return true;
  return state.spentMicros + reservedOf(state, held) + reserveMicros <= budget.limit;
}

function reservedOf({ othersReservedMicros, month }: KeyState, { reservedMicros }: Held): number {
  let sum = othersReservedMicros;
  for (const [of, micros] of reservedMicros) if (of >= month) sum += micros;
  return sum;
}

/** Adds to a list: it is asked for every counter of every call. */
export function addUsed(list: Used[], { state, held, counter, moment }: Question): void {
  const { perMinute, perDay, concurrency, budget } = counter;
  const { day, wallMs, steadyMs } = moment;
  if (perMinute !== undefined) {
    const first = state.chunks[state.first];
    const resetsAtMs = first && wallMs + first.at + WINDOW_MS - steadyMs;
    list.push(usedOf("callsPerMinute", perMinute, state.inWindow, resetsAtMs));
  }
  if (perDay !== undefined) list.push(usedOf("callsPerDay", perDay, state.dayCount, day.endsAtMs));
  if (concurrency !== undefined)
    list.push(usedOf("concurrency", concurrency, state.othersRunning + held.running, undefined));
  if (budget !== undefined) {
    const used = state.spentMicros + reservedOf(state, held);
    list.push(usedOf("monthlyBudget", budget, used, day.monthEndsAtMs));
  }
}

function usedOf(name: Used["name"], { limit, rule }: Cap, used: number, resetsAtMs: number | undefined): Used {
  return { name, rule, limit, used, resetsAtMs };
}

function waitFor(
  used: Used,
  state: KeyState,
  { perMinute }: Counter,
  { steadyMs, wallMs }: Moment,
): number | undefined {
  if (used.name === "callsPerDay") return used.resetsAtMs === undefined ? undefined : used.resetsAtMs - wallMs;
  if (used.name !== "callsPerMinute" || perMinute === undefined) return undefined;
  let tooMany = state.inWindow + 1 - perMinute.limit;
  for (let next = state.first; next < state.chunks.length; next += 1) {
    const { at = steadyMs, n = 0 } = state.chunks[next] ?? {};
    tooMany -= n;
    if (tooMany <= 0) return at + WINDOW_MS - steadyMs;
  }
  return WINDOW_MS;
}
