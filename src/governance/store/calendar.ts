import { readFileSync } from "node:fs";
import { uptime } from "node:os";

/** One calendar day of a time zone, and when it and its month end. */
export interface Day {
  /** `2026-11-15`. */
  readonly day: string;
  /** `2026-11`. */
  readonly month: string;
  readonly endsAtMs: number;
  readonly monthEndsAtMs: number;
}

const HOUR_MS = 3_600_000;
/** A day may have 25 hours, and a time zone that moves across the date line may skip one. */
const LONGEST_DAY_MS = 50 * HOUR_MS;
const LONGEST_MONTH_MS = 33 * 24 * HOUR_MS;

/** Days and months of one time zone. The current day is cached, so that most lookups cost two comparisons. */
export class Calendar {
  readonly timeZone: string;
  readonly #format: Intl.DateTimeFormat;
  #today: { readonly startMs: number; readonly day: Day } | undefined;

  constructor(timeZone: string) {
    this.timeZone = timeZone;
    // The Swedish form is the ISO form.
    this.#format = new Intl.DateTimeFormat("sv-SE", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" });
  }

  at(ms: number): Day {
    const known = this.#today;
    if (known !== undefined && ms >= known.startMs && ms < known.day.endsAtMs) return known.day;
    const day = this.#format.format(ms);
    const month = day.slice(0, 7);
    const endsAtMs = this.#firstWhere(ms, LONGEST_DAY_MS, (text) => text !== day);
    const monthEndsAtMs = this.#firstWhere(ms, LONGEST_MONTH_MS, (text) => !text.startsWith(month));
    const found = { day, month, endsAtMs, monthEndsAtMs };
    // Cached from `ms` on only: when the day began is not computed, and clock changes may make it irregular.
    this.#today = { startMs: ms, day: found };
    return found;
  }

  /** When a day such as `2026-11-15` began. A day that the time zone skipped began with the next one. */
  startOf(day: string): number {
    const nearMs = Date.parse(`${day}T00:00:00Z`);
    return this.#firstWhere(nearMs - LONGEST_DAY_MS, 2 * LONGEST_DAY_MS, (text) => text >= day);
  }

  /** Local time is irregular, so the moment of change is found by binary search. */
  #firstWhere(fromMs: number, withinMs: number, isChanged: (day: string) => boolean): number {
    let low = fromMs;
    let high = fromMs + withinMs;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (isChanged(this.#format.format(middle))) high = middle;
      else low = middle;
    }
    return high;
  }
}

/** Two clocks: the wall clock, which may be set, and a monotonic one. */
export interface Clock {
  /** Milliseconds since the epoch. */
  wallMs(): number;
  /** Milliseconds since the machine started, the same for all its processes. */
  steadyMs(): number;
  /** Changes when the steady clock restarts. */
  readonly bootId: string;
}

export function systemClock(): Clock {
  // Both read the same clock of the machine, from different origins; `performance.now()` creates no BigInt.
  const beganMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  return {
    wallMs: () => Date.now(),
    steadyMs: () => Math.floor(beganMs + performance.now()),
    bootId: readBootId(),
  };
}

function readBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Without this file, the approximate start time replaces the id: a wrong value only makes limits stricter for a
    // minute.
    return `booted-${Math.round((Date.now() / 1000 - uptime()) / 60)}`;
  }
}
