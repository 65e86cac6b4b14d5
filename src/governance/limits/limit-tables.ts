import type { Clock } from "./clock.ts";
import type { Held, KeyState, Moment } from "./key-state.ts";
import { WINDOW_MS } from "./key-state.ts";
import { firstNumber, type LimitsDatabase } from "./limits-database.ts";

const TRIM_MS = 1000;
const KEPT_DAYS = 400;
const DAY_MS = 86_400_000;
/** Keys of counters are JSON, so this is none of them. Like all that a process holds it ends with the process. */
const CLAIM_KEY = "";

interface Statement {
  run(...values: (string | number)[]): unknown;
  get(...values: (string | number)[]): unknown;
  all(...values: (string | number)[]): unknown[];
}

/** The statements of the store, each prepared once. All of them run inside a transaction of its own. */
export class LimitTables {
  readonly #db: LimitsDatabase;
  readonly #statements: Readonly<Record<keyof typeof SQL, Statement>>;
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
      elsewhere: read(SQL.elsewhere),
      neighbour: read(SQL.neighbour),
      ownClaim: read(SQL.ownClaim),
      dropClaims: write(SQL.dropClaims),
      begin: write(SQL.begin),
      commit: write(SQL.commit),
    };
  }

  begin(): void {
    this.#statements.begin.run();
  }

  commit(): void {
    this.#statements.commit.run();
  }

  rollback(): void {
    if (this.#db.inTransaction) this.#db.exec("ROLLBACK");
  }

  /** Whether another process has written since this was last asked. Inside a transaction only. */
  hasForeignChanges(): boolean {
    const version = firstNumber(this.#statements.version.get());
    const isSame = version === this.#version;
    this.#version = version;
    return !isSame;
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
      trimmedAt: steadyMs,
      unsaved: { chunks: [], days: new Map() },
    };
  }

  loadDay(key: string, day: string): Pick<KeyState, "day" | "dayCount"> {
    return { day, dayCount: firstNumber(this.#statements.day.get(key, day)) ?? 0 };
  }

  loadMonth(key: string, month: string): Pick<KeyState, "month" | "spentMicros"> {
    return { month, spentMicros: firstNumber(this.#statements.spent.get(key, month)) ?? 0 };
  }

  saveCalls(state: KeyState, { steadyMs }: Moment): void {
    const { key, unsaved, trimmedAt } = state;
    for (const { at, n } of unsaved.chunks) this.#statements.putCall.run(key, at, n);
    for (const [day, n] of unsaved.days) this.#statements.putDay.run(key, day, n);
    if (steadyMs - trimmedAt < TRIM_MS) return;
    this.#statements.trim.run(key, steadyMs - WINDOW_MS);
    state.trimmedAt = steadyMs;
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

  dropClaims(): void {
    this.#statements.dropClaims.run();
  }

  addSpent(key: string, month: string, micros: number): void {
    this.#statements.addSpent.run(key, month, micros);
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
  }

  others(key: string, month: string, process: number): readonly [running: number, reservedMicros: number] {
    const row = this.#statements.others.get(month, key, process);
    return Array.isArray(row) ? [Number(row[0] ?? 0), Number(row[1] ?? 0)] : [0, 0];
  }
}

const SQL = {
  version: "PRAGMA data_version",
  begin: "BEGIN IMMEDIATE",
  commit: "COMMIT",
  calls: "SELECT at, n FROM calls WHERE key = ? AND at > ? ORDER BY at",
  day: "SELECT n FROM days WHERE key = ? AND day = ?",
  spent: "SELECT micros FROM spent WHERE key = ? AND month = ?",
  others: "SELECT SUM(n), SUM(CASE WHEN month = ? THEN micros ELSE 0 END) FROM held WHERE key = ? AND process <> ?",
  putCall: "INSERT INTO calls (key, at, n) VALUES (?, ?, ?) ON CONFLICT (key, at) DO UPDATE SET n = n + excluded.n",
  trim: "DELETE FROM calls WHERE key = ? AND at <= ?",
  putDay: "INSERT INTO days (key, day, n) VALUES (?, ?, ?) ON CONFLICT (key, day) DO UPDATE SET n = n + excluded.n",
  addSpent:
    "INSERT INTO spent (key, month, micros) VALUES (?, ?, ?) ON CONFLICT (key, month) DO UPDATE SET micros = micros + excluded.micros",
  putHeld:
    "INSERT INTO held (process, key, month, n, micros) VALUES (?, ?, ?, ?, ?) ON CONFLICT (process, key, month) DO UPDATE SET n = excluded.n, micros = excluded.micros",
  dropHeld: "DELETE FROM held WHERE process = ? AND key = ? AND month = ?",
  elsewhere: "SELECT process FROM held WHERE key = '' AND process <> ?",
  ownClaim: "SELECT process FROM held WHERE key = '' AND process = ?",
  dropClaims: "DELETE FROM held WHERE key = ''",
  neighbour: "SELECT id FROM processes WHERE id <> ? LIMIT 1",
} as const;
