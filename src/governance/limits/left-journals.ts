import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { linesOf } from "./counts.ts";
import type { LimitTables } from "./limit-tables.ts";

/** Several times what any process writes. */
const MAX_READ_BYTES = 1 << 24;

/** A pipe must not keep the reader waiting, and a link leads to what is not ours. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** What is there and no journal: a link, a socket. */
const NOT_OURS = new Set(["ENOENT", "ELOOP", "EMLINK", "ENXIO"]);

/** No name that SQLite gives to a file of its own. */
export function journalPath(database: string, process: number): string {
  return `${database}.counts-${process}`;
}

/** The journals of all processes, for whoever finds them: dead ones, frozen ones, and none at all. Inside a transaction. */
export class LeftJournals {
  readonly #database: string;
  readonly #tables: LimitTables;
  readonly #steadyMs: () => number;

  constructor(options: { readonly path: string; readonly tables: LimitTables; readonly steadyMs: () => number }) {
    this.#database = options.path;
    this.#tables = options.tables;
    this.#steadyMs = options.steadyMs;
  }

  /** Puts into the tables what a process has on file and nobody has put there. */
  fold(process: number): void {
    const counted = this.#tables.lastLineOf(process);
    const lines = linesOf(readText(journalPath(this.#database, process))).filter(({ number }) => number > counted);
    const last = lines.at(-1);
    if (last === undefined) return;
    const now = Math.floor(this.#steadyMs());
    // Nothing has come later than now: it would count for longer than a minute. What is old may be of another boot.
    const calls = lines.flatMap((line) => line.calls).map((call) => ({ ...call, at: Math.min(call.at, now) }));
    this.#tables.add([{ calls, spent: lines.flatMap(({ spent }) => spent) }]);
    this.#tables.setLastLine(process, last.number);
    this.#tables.distrust();
  }

  foldAll(): void {
    for (const process of this.#tables.processes()) this.fold(process);
  }

  /** Removes what is left of processes that are gone. Not together with their going: that may be undone. */
  sweep(): void {
    const prefix = basename(journalPath(this.#database, 0)).slice(0, -1);
    const folder = dirname(this.#database);
    const alive = new Set(this.#tables.processes().map((process) => `${prefix}${process}`));
    for (const name of readdirSync(folder)) {
      if (!name.startsWith(prefix) || !/^\d+$/.test(name.slice(prefix.length)) || alive.has(name)) continue;
      try {
        rmSync(join(folder, name), { force: true });
      } catch {
        // A folder, or somebody else's: nobody reads it.
      }
    }
  }
}

/** Nothing where there is no journal. One that is there and cannot be read is an error: its counts must not be lost. */
function readText(path: string): string {
  let file: number;
  try {
    file = openSync(path, READ);
  } catch (error) {
    if (error instanceof Error && "code" in error && NOT_OURS.has(String(error.code))) return "";
    throw error;
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return "";
    const bytes = Buffer.alloc(Math.min(stats.size, MAX_READ_BYTES));
    return bytes.toString("utf8", 0, readFully(file, bytes));
  } finally {
    closeSync(file);
  }
}

function readFully(file: number, bytes: Buffer): number {
  let length = 0;
  for (;;) {
    const read = readSync(file, bytes, length, bytes.length - length, length);
    if (read === 0) return length;
    length += read;
  }
}
