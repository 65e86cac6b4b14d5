import { OwlError } from "../../errors/owl-error.ts";
import type { Counter } from "../policy/terms.ts";
import type { CountJournal } from "./count-journal.ts";
import type { Moment } from "./key-state.ts";
import type { LimitBook } from "./limit-book.ts";
import type { LimitTables } from "./limit-tables.ts";
import { type FileClaim, HANDOVER_MS } from "./sqlite-claim.ts";
import { WriteBehind } from "./sqlite-write-behind.ts";

/** The tables follow so often. A process that hangs for longer counts for others as if it held what it held then. */
const SAVE_MS = 100;
/** A neighbour who has come waits no longer than this; to look costs more than to write a line. */
const LOOK_MS = 4;
/** Who has not looked for so long may have been frozen, and have lost its claim meanwhile. */
const FROZEN_MS = HANDOVER_MS / 2;

export interface SoleCountingOptions {
  readonly tables: LimitTables;
  readonly book: LimitBook;
  readonly claim: FileClaim;
  readonly journal: CountJournal;
  readonly moment: () => Moment;
  /** Says that this process lives, where it was taken for dead. Inside a transaction. */
  readonly enlist: () => void;
  /** Resolves when nothing more is about to come. */
  readonly gathered: () => Promise<void>;
}

/**
 * Counting in memory, while this process has the file for itself. The journal follows before an answer leaves, the tables a
 * moment later, and both at once when somebody else comes or nobody calls.
 */
export class SoleCounting {
  readonly #tables: LimitTables;
  readonly #book: LimitBook;
  readonly #claim: FileClaim;
  readonly #journal: CountJournal;
  readonly #moment: () => Moment;
  readonly #enlist: () => void;
  readonly #behind: WriteBehind;
  #savedAtMs = Number.NEGATIVE_INFINITY;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  /** What cannot be written is not counted on in memory either. */
  #isBehind = false;
  /** Others have counted: what memory knows is not all. */
  #isStale = false;

  constructor({ tables, book, claim, journal, moment, enlist, gathered }: SoleCountingOptions) {
    this.#tables = tables;
    this.#book = book;
    this.#claim = claim;
    this.#journal = journal;
    this.#moment = moment;
    this.#enlist = enlist;
    this.#behind = new WriteBehind({
      write: () => this.#writeDown(),
      onIdle: (idleMs) => this.#rest(idleMs),
      gathered,
    });
  }

  /** Opens the book for these counters, if they can be counted in memory now. */
  open(counters: readonly Counter[]): boolean {
    if (!this.#claim.isHeld || this.#isBehind || this.#isOutOfDate()) return false;
    const moment = this.#moment();
    if (!this.#book.knows(counters, moment)) return false;
    this.#book.resume(moment);
    return true;
  }

  /** Something was counted in memory: settles when it is on file. */
  counted(): Promise<unknown> {
    return this.#behind.add();
  }

  /** The same, and somebody waits for it. */
  booked(): Promise<readonly never[]> {
    const booked = this.#behind.add();
    this.#behind.hurry();
    return booked;
  }

  /** Whether the tables have everything now. */
  save(): boolean {
    const isSaved = !this.#book.hasUncounted && !this.#journal.hasLines && !this.#behind.isAwaited;
    return isSaved || this.#behind.flush(() => this.#save());
  }

  /** Whether the tables have everything and others may count now. */
  end(): boolean {
    return this.#behind.flush(() => this.#handOver());
  }

  /** As of a transaction that stands, and with everything in the tables. */
  goOn(isHeld: boolean): void {
    this.#claim.isHeld = isHeld;
    this.#isStale = false;
    if (isHeld) {
      this.#journal.restart();
      this.#behind.watch();
    } else {
      this.#journal.remove();
      this.#behind.stop();
    }
  }

  stop(): void {
    this.#claim.isHeld = false;
    this.#behind.stop();
    this.#journal.leave();
  }

  #writeDown(): void {
    if (!this.#claim.isHeld) return;
    const isDue = this.#isBehind || this.#isStale || this.#isDue() || this.#isDisturbed(LOOK_MS);
    if (isDue || !this.#writeLine()) this.#save();
  }

  #isDue(): boolean {
    return this.#moment().steadyMs - this.#savedAtMs >= SAVE_MS;
  }

  #isOutOfDate(): boolean {
    this.#isStale ||= this.#isDisturbed(FROZEN_MS);
    return this.#isStale;
  }

  /** As of the last look, unless that was so long ago. */
  #isDisturbed(afterMs: number): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < afterMs) return false;
    this.#lookedAtMs = nowMs;
    return this.#tables.isDisturbed();
  }

  #writeLine(): boolean {
    if (!this.#book.hasUncounted) return true;
    try {
      if (!this.#journal.append(this.#book.uncounted())) return false;
    } catch (error) {
      this.#isBehind = true;
      throw unavailable(error);
    }
    this.#book.counted();
    return true;
  }

  /** Puts everything into the tables, and makes room when somebody else has come. */
  #save(): void {
    if (!this.#claim.isHeld) return;
    this.#transact(() => {
      const isDisturbed = this.#tables.hasForeignChanges();
      const staysAlone = !isDisturbed || this.#claim.renew();
      return () => {
        if (isDisturbed) this.#book.forget();
        this.goOn(staysAlone);
      };
    });
  }

  #handOver(): void {
    if (!this.#claim.isHeld) return;
    this.#transact(() => {
      this.#claim.drop();
      return () => this.goOn(false);
    });
  }

  #rest(idleMs: number): void {
    try {
      if (!this.#claim.outlasts(idleMs)) this.#handOver();
      else if (this.#journal.hasLines && this.#isDue()) this.#save();
    } catch {
      // The claim stays, and the next round tries again; whoever calls meanwhile finds out.
    }
  }

  /** Saves everything; `write` adds to it, and returns what holds when the transaction stands. */
  #transact(write: () => () => void): void {
    const moment = this.#moment();
    this.#book.resume(moment);
    try {
      const stands = this.#tables.transact(() => {
        this.#enlist();
        this.#journal.save(moment.steadyMs);
        this.#book.save();
        return write();
      });
      this.#book.keep();
      stands();
      this.#savedAtMs = moment.steadyMs;
      this.#isBehind = false;
    } catch (error) {
      this.#isBehind = true;
      throw unavailable(error);
    }
  }
}

export function unavailable(cause: unknown): OwlError {
  return new OwlError("store_unavailable", "calls cannot be counted at the moment, so none is let through", { cause });
}
