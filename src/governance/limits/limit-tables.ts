import type { Clock } from "./clock.ts";
import { type Counts, sumsOf } from "./counts.ts";
import type { Held, KeyState, Moment } from "./key-state.ts";
import { WINDOW_MS } from "./key-state.ts";
import { firstNumber, type LimitsDatabase } from "./limits-database.ts";

const TRIM_MS = 1000;
const MAX_TRIMMED_KEYS = 10_000;
const KEPT_DAYS = 400;
const DAY_MS = 86_400_000;
/** Keys of counters are JSON, so this is none of them. Like all that a process holds it ends with the process. */
const CLAIM_KEY = "";
/** A process that was taken for dead may wake and ask which of its lines count: after so many others it does not. */
const KEPT_LAST_LINES = 1000;

interface Statement {
  run(...values: (string | number)[]): unknown;
  get(...values: (string | number)[]): unknown;
  all(...values: (string | number)[]): unknown[];
}

/** The statements of the store, each prepared once. All of them run inside `transact`. */
export class LimitTables {
  readonly #db: LimitsDatabase;
  readonly #statements: Readonly<Record<keyof typeof SQL, Statement>>;
  readonly #trimmedAt = new Map<string, number>();
  #version: number | undefined;

  constructor(db: LimitsDatabase) {
    this.#db = db;
    const write = (sql: string): Statement => db.prepare<(string | number)[]>(sql);
    const read = (sql: string): Statement => db.prepare<(string | number)[]>(sql).raw();
    this.#statements = {
      version: read(SQL.version),
      calls: read(SQL.calls),
      day: read(SQL.day),
      spent: read(SQL.spent),
      others: read(SQL.others),
      putCall: write(SQL.putCall),
      trim: write(SQL.trim),
      putDay: write(SQL.putDay),
      addSpent: write(SQL.addSpent),
      putHeld: write(SQL.putHeld),
      dropHeld: write(SQL.dropHeld),
      lastLine: read(SQL.lastLine),
      putLastLine: write(SQL.putLastLine),
      elsewhere: read(SQL.elsewhere),
      neighbour: read(SQL.neighbour),
      ownClaim: read(SQL.ownClaim),
      begin: write(SQL.begin),
      commit: write(SQL.commit),
    };
  }

  /** All of what `run` does, or nothing when it throws. */
  transact<T>(run: () => T): T {
    try {
      this.#statements.begin.run();
      const result = run();
      this.#statements.commit.run();
      return result;
    } catch (error) {
      // What this transaction has asked and nobody acted on is asked again.
      this.distrust();
      this.#rollBack();
      throw error;
    }
  }

  /** Whether another process has written since this was last asked. Inside a transaction only. */
  hasForeignChanges(): boolean {
    const version = firstNumber(this.#statements.version.get());
    const isSame = version === this.#version;
    this.#version = version;
    return !isSame;
  }

  /** Something was written that nobody has in memory: it counts as foreign. */
  distrust(): void {
    this.#version = undefined;
  }

  /** The same ahead of the transaction that asks. A file that cannot be read is disturbed, too. */
  isDisturbed(): boolean {
    try {
      return firstNumber(this.#statements.version.get()) !== this.#version;
    } catch {
      // The next transaction says what is wrong.
      return true;
    }
  }

  load(key: string, { steadyMs, day }: Moment, process: number): KeyState {
    const rows = this.#statements.calls.all(key, steadyMs - WINDOW_MS);
    const chunks = rows.map((row) =>
      Array.isArray(row) ? { at: Number(row[0]), n: Number(row[1]) } : { at: 0, n: 0 },
    );
    const [othersRunning, othersReservedMicros] = this.others(key, day.month, process);
    return {
      key,
      chunks,
      first: 0,
      inWindow: chunks.reduce((sum, { n }) => sum + n, 0),
      ...this.loadDay(key, day.day),
      ...this.loadMonth(key, day.month),
      othersRunning,
      othersReservedMicros,
      uncounted: [],
    };
  }

  /** With what later days count: a clock that is set back opens no day anew. */
  loadDay(key: string, day: string): Pick<KeyState, "day" | "dayCount"> {
    return { day, dayCount: firstNumber(this.#statements.day.get(key, day)) ?? 0 };
  }

  /** With what later months cost, for the same reason. */
  loadMonth(key: string, month: string): Pick<KeyState, "month" | "spentMicros"> {
    return { month, spentMicros: firstNumber(this.#statements.spent.get(key, month)) ?? 0 };
  }

  /** To what is there, so that what others wrote stays. Who tells the time of this boot has old rows removed. */
  add(counts: readonly Counts[], steadyMs?: number): void {
    const { putCall, putDay, addSpent } = this.#statements;
    const { moments, days, months } = sumsOf(counts);
    for (const [key, sums] of moments) {
      for (const [at, n] of sums) putCall.run(key, at, n);
      if (steadyMs !== undefined) this.#trim(key, steadyMs);
    }
    for (const [key, sums] of days) for (const [day, n] of sums) putDay.run(key, day, n);
    for (const [key, sums] of months) for (const [month, micros] of sums) addSpent.run(key, month, micros);
  }

  /** The number of the last line of a process's journal that is in the tables. */
  lastLineOf(process: number): number {
    return firstNumber(this.#statements.lastLine.get(`${LAST_LINE}${process}`)) ?? 0;
  }

  setLastLine(process: number, number: number): void {
    this.#statements.putLastLine.run(`${LAST_LINE}${process}`, String(number));
  }

  dropLastLine(process: number): void {
    this.#db.prepare("DELETE FROM facts WHERE name = ?").run(`${LAST_LINE}${process}`);
  }

  processes(): number[] {
    const rows = this.#db.prepare("SELECT id FROM processes").raw().all();
    return rows.map((row) => firstNumber(row) ?? 0);
  }

  saveHeld(process: number, key: string, { running, reservedMicros, isStored }: Held): void {
    const { putHeld, dropHeld } = this.#statements;
    // Running calls are of no month.
    if (running > 0) putHeld.run(process, key, "", running, 0);
    else if (isStored) dropHeld.run(process, key, "");
    for (const [month, micros] of reservedMicros) {
      if (micros > 0) putHeld.run(process, key, month, 0, micros);
      else if (isStored) dropHeld.run(process, key, month);
    }
  }

  /** Another process counts in its own memory for the moment: nobody else may. */
  isCountedElsewhere(process: number): boolean {
    return this.#statements.elsewhere.get(process) !== undefined;
  }

  /** Who counts in memory, as far as the file knows. */
  claimants(): number[] {
    const rows = this.#db.prepare("SELECT process FROM held WHERE key = ''").raw().all();
    return rows.map((row) => firstNumber(row) ?? 0);
  }

  /** Whether nobody else shares the file. */
  isOnlyProcess(process: number): boolean {
    return this.#statements.neighbour.get(process) === undefined;
  }

  claim(process: number): void {
    this.#statements.putHeld.run(process, CLAIM_KEY, "", 1, 0);
  }

  hasClaim(process: number): boolean {
    return this.#statements.ownClaim.get(process) !== undefined;
  }

  dropClaim(process: number): void {
    this.#statements.dropHeld.run(process, CLAIM_KEY, "");
  }

  /** After a restart of the machine the steady clock starts anew: what was counted before counts as if it came now. */
  adoptBoot(clock: Clock): void {
    const { bootId } = clock;
    const row = this.#db.prepare("SELECT value FROM facts WHERE name = 'boot'").raw().get();
    if (Array.isArray(row) && row[0] === bootId) return;
    const now = Math.floor(clock.steadyMs());
    this.#db.prepare("CREATE TEMP TABLE moved AS SELECT key, SUM(n) AS n FROM calls GROUP BY key").run();
    this.#db.exec("DELETE FROM calls");
    this.#db.prepare("INSERT INTO calls (key, at, n) SELECT key, ?, n FROM moved").run(now);
    this.#db.exec("DROP TABLE moved");
    this.#db.prepare("INSERT OR REPLACE INTO facts (name, value) VALUES ('boot', ?)").run(bootId);
  }

  /** Far more than any limit looks back, so that a clock that was set wrong for a while forgets nothing. */
  prune({ steadyMs, wallMs }: Moment): void {
    const day = new Date(wallMs - KEPT_DAYS * DAY_MS).toISOString().slice(0, 10);
    this.#db.prepare("DELETE FROM calls WHERE at <= ?").run(steadyMs - WINDOW_MS);
    this.#db.prepare("DELETE FROM days WHERE day < ?").run(day);
    this.#db.prepare("DELETE FROM spent WHERE month < ?").run(day.slice(0, 7));
    this.#db.prepare(PRUNE_LAST_LINES).run(LAST_LINE, KEPT_LAST_LINES);
  }

  others(key: string, month: string, process: number): readonly [running: number, reservedMicros: number] {
    const row = this.#statements.others.get(month, key, process);
    return Array.isArray(row) ? [Number(row[0] ?? 0), Number(row[1] ?? 0)] : [0, 0];
  }

  #rollBack(): void {
    try {
      if (this.#db.inTransaction) this.#db.exec("ROLLBACK");
    } catch {
      // A connection that cannot roll back has nothing to roll back any more.
    }
  }

  #trim(key: string, steadyMs: number): void {
    if (steadyMs - (this.#trimmedAt.get(key) ?? Number.NEGATIVE_INFINITY) < TRIM_MS) return;
    this.#statements.trim.run(key, steadyMs - WINDOW_MS);
    if (this.#trimmedAt.size > MAX_TRIMMED_KEYS) this.#trimmedAt.clear();
    this.#trimmedAt.set(key, steadyMs);
  }
}

/** Before the number of a process: the name of a fact. */
const LAST_LINE = "counted:";
const PRUNE_LAST_LINES = `WITH old AS (SELECT name, CAST(substr(name, 1 + length(?1)) AS INTEGER) AS id FROM facts WHERE substr(name, 1, length(?1)) = ?1)
  DELETE FROM facts WHERE name IN (SELECT name FROM old WHERE id NOT IN (SELECT id FROM processes) AND id < (SELECT max(seq) FROM sqlite_sequence) - ?2)`;

const SQL = {
  version: "PRAGMA data_version",
  begin: "BEGIN IMMEDIATE",
  commit: "COMMIT",
  calls: "SELECT at, n FROM calls WHERE key = ? AND at > ? ORDER BY at",
  day: "SELECT SUM(n) FROM days WHERE key = ? AND day >= ?",
  spent: "SELECT SUM(micros) FROM spent WHERE key = ? AND month >= ?",
  others: "SELECT SUM(n), SUM(CASE WHEN month >= ? THEN micros ELSE 0 END) FROM held WHERE key = ? AND process <> ?",
  putCall: "INSERT INTO calls (key, at, n) VALUES (?, ?, ?) ON CONFLICT (key, at) DO UPDATE SET n = n + excluded.n",
  trim: "DELETE FROM calls WHERE key = ? AND at <= ?",
  putDay: "INSERT INTO days (key, day, n) VALUES (?, ?, ?) ON CONFLICT (key, day) DO UPDATE SET n = n + excluded.n",
  addSpent:
    "INSERT INTO spent (key, month, micros) VALUES (?, ?, ?) ON CONFLICT (key, month) DO UPDATE SET micros = micros + excluded.micros",
  putHeld:
    "INSERT INTO held (process, key, month, n, micros) VALUES (?, ?, ?, ?, ?) ON CONFLICT (process, key, month) DO UPDATE SET n = excluded.n, micros = excluded.micros",
  lastLine: "SELECT value FROM facts WHERE name = ?",
  putLastLine: "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)",
  dropHeld: "DELETE FROM held WHERE process = ? AND key = ? AND month = ?",
  elsewhere: "SELECT process FROM held WHERE key = '' AND process <> ?",
  ownClaim: "SELECT process FROM held WHERE key = '' AND process = ?",
  neighbour: "SELECT id FROM processes WHERE id <> ? LIMIT 1",
} as const;
