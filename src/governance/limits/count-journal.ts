import { closeSync, constants, fstatSync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { type CountLine, type Counts, MAX_LINE_CHARS, toText } from "./counts.ts";
import { journalPath } from "./left-journals.ts";
import type { LimitTables } from "./limit-tables.ts";

/** Never through a link, and never into a file that somebody else has made. */
const ANEW = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** So no line is longer than what is parsed. */
const MAX_BYTES = MAX_LINE_CHARS;

export interface CountJournalOptions {
  /** Of the database. */
  readonly path: string;
  readonly tables: LimitTables;
  readonly process: number;
}

/**
 * Counts of a process that has the database for itself, on file before the tables have them: a line costs far less than
 * a transaction. The tables name the last line that is in them, in the transaction that put it there, so whoever takes the
 * lines over adds each of them once. Not synced: a killed process loses nothing, a power cut at most its last moments.
 */
export class CountJournal {
  readonly #tables: LimitTables;
  readonly #process: number;
  readonly #path: string;
  #file: number | undefined;
  #bytes = 0;
  #number = 0;
  #isWhole = false;
  /** Lines that this process has not put into the tables. */
  #lines: CountLine[] = [];

  constructor({ path, tables, process }: CountJournalOptions) {
    this.#tables = tables;
    this.#process = process;
    this.#path = journalPath(path, process);
  }

  get hasLines(): boolean {
    return this.#lines.length > 0;
  }

  /** Whether there was room for it. Throws when it could not be written whole: then no other may follow. */
  append({ calls, spent }: Counts): boolean {
    const line = { number: this.#number + 1, calls, spent };
    const bytes = Buffer.from(toText(line));
    if (this.#file === undefined || !this.#isWhole || this.#bytes + bytes.length > MAX_BYTES) return false;
    // A number that may have reached the file is never given again.
    this.#number += 1;
    this.#isWhole = false;
    const written = writeSync(this.#file, bytes);
    if (written < bytes.length) throw new Error(`only ${written} of ${bytes.length} bytes could be written`);
    this.#isWhole = true;
    this.#bytes += written;
    this.#lines.push(line);
    return true;
  }

  /** Puts into the tables what nobody has put there. Inside a transaction. */
  save(steadyMs: number): void {
    if (this.#number === 0) return;
    const counted = this.#tables.lastLineOf(this.#process);
    const lines = this.#lines.filter(({ number }) => number > counted);
    this.#tables.add(lines, steadyMs);
    this.#tables.setLastLine(this.#process, this.#number);
  }

  /** The tables have everything: it begins anew, and a failure means only that each time is a transaction. */
  restart(): void {
    this.#lines = [];
    const isEmpty = this.#isWhole && this.#bytes === 0;
    this.#isWhole = false;
    try {
      // Whoever took this process for dead has removed it.
      if (this.#file !== undefined && fstatSync(this.#file).nlink === 0) this.leave();
      if (this.#file === undefined) {
        rmSync(this.#path, { force: true });
        this.#file = openSync(this.#path, ANEW, 0o600);
      } else if (!isEmpty) {
        ftruncateSync(this.#file, 0);
      }
      this.#bytes = 0;
      this.#isWhole = true;
    } catch {
      // The next time tries again.
    }
  }

  /** The tables have everything, and nothing more comes. */
  remove(): void {
    this.#lines = [];
    if (this.#file === undefined) return;
    this.leave();
    try {
      rmSync(this.#path, { force: true });
    } catch {
      // Its lines are known to be in the tables, and the next process sweeps.
    }
  }

  /** For whoever comes next. */
  leave(): void {
    this.#isWhole = false;
    const file = this.#file;
    this.#file = undefined;
    try {
      if (file !== undefined) closeSync(file);
    } catch {
      // Whatever was written is in the file, closed well or not.
    }
  }
}
