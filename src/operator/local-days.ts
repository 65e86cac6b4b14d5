import { Calendar } from "../governance/store/calendar.ts";
import type { DayShift } from "../governance/ledger/query.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Days and months in the time zone of the policy. */
export class LocalDays {
  readonly timeZone: string;
  readonly #calendar: Calendar;
  readonly #format: Intl.DateTimeFormat;

  constructor(timeZone: string) {
    this.timeZone = timeZone;
    this.#calendar = new Calendar(timeZone);
    // The Swedish format is the ISO format.
    this.#format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  }

  /** For example `2026-11-15`. */
  dayAt(ms: number): string {
    return this.#calendar.at(ms).day;
  }

  monthStartMs(nowMs: number): number {
    return this.#calendar.startOf(`${this.#calendar.at(nowMs).month}-01`);
  }

  /** The start of the first of the last `days` days, including today. */
  startOfLastMs(days: number, nowMs: number): number {
    const today = Date.parse(`${this.dayAt(nowMs)}T00:00:00Z`);
    return this.#calendar.startOf(new Date(today - (days - 1) * DAY_MS).toISOString().slice(0, 10));
  }

  /** The elapsed part of the month. At least one hour, because a forecast from a few minutes would be unreliable. */
  monthPart(nowMs: number): number {
    const startMs = this.monthStartMs(nowMs);
    const lengthMs = this.#calendar.at(nowMs).monthEndsAtMs - startMs;
    return Math.min(1, Math.max(HOUR_MS, nowMs - startMs) / lengthMs);
  }

  /**
   * The offsets of the zone from UTC between the two times, each with its start. The offset changes with daylight
   * saving time.
   */
  shifts(fromMs: number, toMs: number): readonly DayShift[] {
    const found: DayShift[] = [{ fromMs, shiftMs: this.#shiftAt(fromMs) }];
    for (let ms = fromMs; ms < toMs; ms += DAY_MS) {
      const nextMs = Math.min(ms + DAY_MS, toMs);
      const shiftMs = this.#shiftAt(nextMs);
      if (shiftMs !== found.at(-1)?.shiftMs) found.push({ fromMs: this.#firstWith(shiftMs, ms, nextMs), shiftMs });
    }
    return found;
  }

  #firstWith(shiftMs: number, beforeMs: number, atMs: number): number {
    let [low, high] = [beforeMs, atMs];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#shiftAt(middle) === shiftMs) high = middle;
      else low = middle;
    }
    return high;
  }

  #shiftAt(ms: number): number {
    const second = Math.floor(ms / 1000) * 1000;
    return Date.parse(`${this.#format.format(second).replace(" ", "T")}Z`) - second;
  }
}
