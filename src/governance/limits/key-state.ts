import type { Cap, Counter } from "../policy/terms.ts";
import type { Day } from "./calendar.ts";
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
  trimmedAt: number;
  /** What has come since the file was last written: it is added there, so that what others wrote stays. */
  unsaved: { chunks: Chunk[]; readonly days: Map<string, number> };
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
  const { chunks, unsaved, day } = state;
  addTo(chunks, steadyMs);
  addTo(unsaved.chunks, steadyMs);
  unsaved.days.set(day, (unsaved.days.get(day) ?? 0) + 1);
  state.inWindow += 1;
  state.dayCount += 1;
}

function addTo(chunks: Chunk[], at: number): void {
  const last = chunks.at(-1);
  if (last !== undefined && last.at === at) last.n += 1;
  else chunks.push({ at, n: 1 });
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
  for (const each of usedOf(question)) {
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
  return othersReservedMicros + (reservedMicros.get(month) ?? 0);
}

export function usedOf({ state, held, counter, moment }: Question): Used[] {
  const { perMinute, perDay, concurrency, budget } = counter;
  const { day, wallMs, steadyMs } = moment;
  const used: Used[] = [];
  const add = (name: Used["name"], { limit, rule }: Cap, count: number, resetsAtMs: number | undefined): void =>
    void used.push({ name, rule, limit, used: count, resetsAtMs });
  if (perMinute !== undefined) {
    const first = state.chunks[state.first];
    add("callsPerMinute", perMinute, state.inWindow, first && wallMs + first.at + WINDOW_MS - steadyMs);
  }
  if (perDay !== undefined) add("callsPerDay", perDay, state.dayCount, day.endsAtMs);
  if (concurrency !== undefined) add("concurrency", concurrency, state.othersRunning + held.running, undefined);
  if (budget !== undefined)
    add("monthlyBudget", budget, state.spentMicros + reservedOf(state, held), day.monthEndsAtMs);
  return used;
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
