import type { LedgerEntry } from "./ledger.ts";

/** Refusals of one principal by one rule, from the first that got a row of its own to the end of the window. */
interface Streak {
  readonly first: LedgerEntry;
  readonly written: Promise<{ readonly seq: number }>;
  readonly startedAtMs: number;
  readonly names: Map<string, number>;
  firstSeq: number;
  lastAtMs: number;
  repeats: number;
}

/** What a streak comes to. */
export interface CountedRefusals {
  readonly entry: LedgerEntry;
  readonly count: number;
}

export interface RefusalCounterOptions {
  readonly windowMs: number;
  readonly write: (entry: LedgerEntry) => Promise<{ readonly seq: number }>;
  readonly writeCount: (refusals: CountedRefusals) => Promise<unknown>;
  readonly now: () => number;
}

/** Past this, the oldest streak closes early. */
const MAX_STREAKS = 10_000;
const MAX_NAMES = 20;

/** So that refusals cannot fill the disk: the first is written as it is, those that follow within the window are counted, and the count is written when it closes. */
export class RefusalCounter {
  readonly #options: RefusalCounterOptions;
  readonly #streaks = new Map<string, Streak>();
  /** Counts whose window is over, until they are on disk. */
  #unwritten: CountedRefusals[] = [];

  constructor(options: RefusalCounterOptions) {
    this.#options = options;
  }

  add(entry: LedgerEntry): Promise<{ readonly seq: number }> {
    const { windowMs, now } = this.#options;
    const key = JSON.stringify([entry.principal, entry.rule, entry.errorKind]);
    const streak = this.#streaks.get(key);
    if (streak !== undefined && now() - streak.startedAtMs < windowMs) {
      streak.repeats += 1;
      streak.lastAtMs = entry.time;
      if (streak.names.size < MAX_NAMES || streak.names.has(entry.name)) {
        streak.names.set(entry.name, (streak.names.get(entry.name) ?? 0) + 1);
      }
      return streak.written;
    }
    if (streak !== undefined) this.#close(key, streak);
    const [oldest] = this.#streaks.size >= MAX_STREAKS ? this.#streaks : [];
    if (oldest !== undefined) this.#close(...oldest);
    return this.#open(key, entry);
  }

  /** Writes the counts of windows that are over; of all, when the server stops. What cannot be written is tried again. */
  async flush(which: "over" | "all"): Promise<void> {
    const { windowMs, now, writeCount } = this.#options;
    for (const [key, streak] of this.#streaks) {
      if (which === "all" || now() - streak.startedAtMs >= windowMs) this.#close(key, streak);
    }
    const counts = this.#unwritten;
    this.#unwritten = [];
    const results = await Promise.allSettled(counts.map(writeCount));
    const failed = counts.filter((_, index) => results[index]?.status === "rejected");
    this.#unwritten.push(...failed);
    const first = results.find((result) => result.status === "rejected");
    if (first !== undefined) throw first.reason;
  }

  #open(key: string, first: LedgerEntry): Promise<{ readonly seq: number }> {
    const written = this.#options.write(first);
    const startedAtMs = this.#options.now();
    const streak = { first, written, startedAtMs, names: new Map(), firstSeq: 0, lastAtMs: first.time, repeats: 0 };
    this.#streaks.set(key, streak);
    written.then(
      ({ seq }) => (streak.firstSeq = seq),
      // What was never written must not stand for others.
      () => this.#streaks.delete(key),
    );
    return written;
  }

  #close(key: string, { first, repeats, names, firstSeq, lastAtMs }: Streak): void {
    this.#streaks.delete(key);
    if (repeats === 0) return;
    const args = {
      first_seq: firstSeq,
      from: new Date(first.time).toISOString(),
      to: new Date(lastAtMs).toISOString(),
      names: Object.fromEntries(names),
    };
    const entry = { ...first, time: lastAtMs, args, result: undefined, durationMs: 0, costMicros: 0 };
    this.#unwritten.push({ entry, count: repeats });
  }
}
