import { hash } from "node:crypto";
import { withoutTexts } from "../../telemetry/redact.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { Recorded } from "./settlement-queue.ts";

/** Refusals of one principal by one rule, from the first that got a row to the end of the window. */
interface Streak {
  readonly first: LedgerEntry;
  readonly written: Promise<Recorded>;
  readonly startedAtMs: number;
  /** Digests of the calls that got a row. */
  readonly rows: Set<string>;
  /** How many calls got no row, by refused name. */
  readonly repeats: Map<string, number>;
  firstSeq: number;
  lastAtMs: number;
}

/** The count of a streak for one name. */
export interface CountedRefusals {
  readonly entry: LedgerEntry;
  readonly count: number;
}

export interface RefusalCounterOptions {
  readonly windowMs: number;
  readonly write: (entry: LedgerEntry) => Promise<Recorded>;
  readonly writeCount: (refusals: CountedRefusals) => Promise<unknown>;
  readonly now: () => number;
}

/** Past this, the oldest streak closes early. */
const MAX_STREAKS = 10_000;
/** How many different calls get a row: a harmless first refusal must not hide what else was attempted. */
const MAX_ROWS = 10;
/** Callers can invent any number of names: those beyond this number are counted together. */
const MAX_NAMES = 20;
/** The maximum length of a name in the ledger: longer names would only fill the memory. */
const MAX_NAME_CHARS = 512;
const OTHER_NAMES = "(others)";

/**
 * Keeps refusals from filling the disk. The first calls that differ get a row each. Calls that repeat one of them, or
 * follow within the window, are counted, and the counts are written when the window closes, one for each name.
 */
export class RefusalCounter {
  readonly #options: RefusalCounterOptions;
  readonly #streaks = new Map<string, Streak>();
  /** Counts of closed windows that are not on disk yet. */
  #unwritten: CountedRefusals[] = [];

  constructor(options: RefusalCounterOptions) {
    this.#options = options;
  }

  add(entry: LedgerEntry): Promise<Recorded> {
    const { windowMs, now } = this.#options;
    const key = JSON.stringify([entry.principal, entry.rule, entry.errorKind]);
    const streak = this.#streaks.get(key);
    if (streak !== undefined && now() - streak.startedAtMs < windowMs) {
      streak.lastAtMs = entry.time;
      return this.#addTo(streak, entry);
    }
    if (streak !== undefined) this.#close(key, streak);
    const [oldest] = this.#streaks.size >= MAX_STREAKS ? this.#streaks : [];
    if (oldest !== undefined) this.#close(...oldest);
    return this.#open(key, entry);
  }

  /**
   * Writes the counts of windows that are over, or of all windows when the server stops. A failed write is tried again.
   */
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

  #addTo({ rows, repeats, written }: Streak, entry: LedgerEntry): Promise<Recorded> {
    const digest = rows.size < MAX_ROWS ? digestOf(entry) : undefined;
    if (digest !== undefined && !rows.has(digest)) {
      rows.add(digest);
      const own = this.#options.write(entry);
      own.catch(() => rows.delete(digest));
      return own;
    }
    const name = nameOf(entry);
    const isKept = repeats.has(name) || (repeats.size < MAX_NAMES && name.length <= MAX_NAME_CHARS);
    const counted = isKept ? name : OTHER_NAMES;
    repeats.set(counted, (repeats.get(counted) ?? 0) + 1);
    return written;
  }

  #open(key: string, first: LedgerEntry): Promise<Recorded> {
    const written = this.#options.write(first);
    const startedAtMs = this.#options.now();
    const rows = new Set([digestOf(first)]);
    const streak = { first, written, startedAtMs, rows, repeats: new Map(), firstSeq: 0, lastAtMs: first.time };
    this.#streaks.set(key, streak);
    written.then(
      ({ seq }) => (streak.firstSeq = seq),
      // A refusal that was not written cannot be the row that counts others.
      () => this.#streaks.delete(key),
    );
    return written;
  }

  #close(key: string, { first, repeats, firstSeq, lastAtMs }: Streak): void {
    this.#streaks.delete(key);
    const args = {
      first_seq: firstSeq,
      from: new Date(first.time).toISOString(),
      to: new Date(lastAtMs).toISOString(),
    };
    const shared = { ...first, time: lastAtMs, args, result: undefined, durationMs: 0, costMicros: 0 };
    for (const [name, count] of repeats) {
      const entry = name === nameOf(first) ? shared : { ...shared, name, calledAs: name };
      this.#unwritten.push({ entry, count });
    }
  }
}

/** Without ids that give access: the row of the count knows only those of the first refusal. */
function nameOf({ name, secrets }: LedgerEntry): string {
  return withoutTexts(name, secrets);
}

function digestOf({ name, args }: LedgerEntry): string {
  return hash("sha256", JSON.stringify([name, args]), "base64");
}
