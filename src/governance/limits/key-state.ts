import type { Counter } from "../policy/terms.ts";
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
  chunks: Chunk[];
  inWindow: number;
  day: string;
  dayCount: number;
  month: string;
  spentMicros: number;
  /** What other processes hold. */
  othersRunning: number;
  othersReservedMicros: number;
  trimmedAt: number;
}

/** What this process holds under one key. */
export interface Held {
  running: number;
  readonly reservedMicros: Map<string, number>;
}

export function forgetExpired(state: KeyState, steadyMs: number): void {
  let expired = 0;
  for (const { at, n } of state.chunks) {
    if (at > steadyMs - WINDOW_MS) break;
    expired += 1;
    state.inWindow -= n;
  }
  if (expired > 0) state.chunks.splice(0, expired);
}

export function addCall(state: KeyState, steadyMs: number): void {
  const last = state.chunks.at(-1);
  if (last !== undefined && last.at === steadyMs) last.n += 1;
  else state.chunks.push({ at: steadyMs, n: 1 });
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
  const { state, counter, moment } = question;
  const used = usedOf(question);
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

export function usedOf({ state, held, counter, moment }: Question): Used[] {
  const { perMinute, perDay, concurrency, budget } = counter;
  const { day, wallMs, steadyMs } = moment;
  const used: Used[] = [];
  if (perMinute !== undefined) {
    const first = state.chunks[0];
    const resetsAtMs = first === undefined ? undefined : wallMs + first.at + WINDOW_MS - steadyMs;
    used.push({ name: "callsPerMinute", ...perMinute, used: state.inWindow, resetsAtMs });
  }
  if (perDay !== undefined) {
    used.push({ name: "callsPerDay", ...perDay, used: state.dayCount, resetsAtMs: day.endsAtMs });
  }
  if (concurrency !== undefined) {
    const running = state.othersRunning + held.running;
    used.push({ name: "concurrency", ...concurrency, used: running, resetsAtMs: undefined });
  }
  if (budget !== undefined) {
    const reserved = state.othersReservedMicros + (held.reservedMicros.get(state.month) ?? 0);
    const { monthEndsAtMs } = day;
    used.push({ name: "monthlyBudget", ...budget, used: state.spentMicros + reserved, resetsAtMs: monthEndsAtMs });
  }
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
  for (const { at, n } of state.chunks) {
    tooMany -= n;
    if (tooMany <= 0) return at + WINDOW_MS - steadyMs;
  }
  return WINDOW_MS;
}
