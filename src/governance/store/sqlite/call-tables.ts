import { existsSync } from "node:fs";
import Database from "libsql";
import type { CallId, Settlement, Spending } from "../../ledger/store.ts";
import type { SqliteConnection } from "../../ledger/sqlite/connection.ts";
import { callsOf, type Hold, type Start, toHolds } from "../admit-batch.ts";
import { type KeyCounts, type Moment, toKeyCounts, WINDOW_MS } from "../key-counts.ts";

const TRIM_MS = 1000;
const MAX_TRIMMED_KEYS = 10_000;
const KEPT_DAYS = 400;
const DAY_MS = 86_400_000;
/** The most starts that one transaction settles. */
const MAX_DEAD_STARTS = 500;

type Row = readonly unknown[];

interface Statement {
  run(...values: (string | number)[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(...values: (string | number)[]): unknown;
  all(...values: (string | number)[]): unknown[];
}

/** A call that a settlement has ended, with what it held. */
interface Ended {
  readonly holds: readonly Hold[];
  readonly day: string;
  readonly micros: number;
}

export interface Ending {
  /** For each settlement, whether it takes effect. It does not when the start of its call is gone. */
  readonly counts: readonly boolean[];
  readonly spendings: readonly (readonly Spending[])[];
}

interface EndOptions {
  readonly month: string;
  readonly reseal: (start: Omit<Start, "mac">) => Start;
}

/** The statements of the store on one connection, each prepared once. All of them run inside a transaction. */
export class CallTables {
  readonly #db: SqliteConnection;
  readonly #statements: Readonly<Record<keyof typeof SQL, Statement>>;
  readonly #trimmedAtMs = new Map<string, number>();

  constructor(db: SqliteConnection) {
    this.#db = db;
    const prepared = Object.entries(SQL).map(([name, sql]): [string, Statement] => {
      const statement = db.prepare<(string | number)[]>(sql);
      return [name, READS.has(name) ? statement.raw() : statement];
    });
    // oxlint-disable-next-line typescript/consistent-type-assertions -- every name of SQL is there
    this.#statements = Object.fromEntries(prepared) as Record<keyof typeof SQL, Statement>;
  }

  /** Loads the counts of these keys, each with the lowest limit per minute of its counters. */
  load(keys: ReadonlyMap<string, number>, { steadyMs, day }: Moment): Map<string, KeyCounts> {
    const counts = new Map<string, KeyCounts>();
    if (keys.size === 0) return counts;
    const names = JSON.stringify([...keys.keys()]);
    const fromMs = steadyMs - WINDOW_MS;
    for (const row of listOf(this.#statements.loadCounts.get(names, fromMs, day.day, day.month))) {
      const found = toKeyCounts(row);
      counts.set(found.key, found);
    }
    for (const found of counts.values()) this.#loadBlocker(found, keys.get(found.key), fromMs);
    return counts;
  }

  /** The window holds more calls than the limit only after the limit was lowered. */
  #loadBlocker(counts: KeyCounts, limit: number | undefined, fromMs: number): void {
    const { key, last, expired } = counts;
    if (limit === undefined || last - expired <= limit) return;
    const [row] = rows(this.#statements.loadBlocker.all(key, fromMs, last + 1 - limit));
    if (row !== undefined) counts.blockedByMs = Number(row[0]);
  }

  /** Writes the counts and starts of a batch. */
  add(counts: Iterable<KeyCounts>, starts: readonly Start[], { steadyMs, day }: Moment): void {
    const times: unknown[] = [];
    const days: unknown[] = [];
    for (const { key, last, newestAtMs, expired, addedCalls, addedMicros } of counts) {
      if (addedCalls === 0) continue;
      // An entry older than all calls, from which the calls of the first minute are counted.
      if (last === addedCalls) times.push([key, -WINDOW_MS, 0]);
      times.push([key, Math.max(steadyMs, newestAtMs), last]);
      days.push([key, addedCalls, addedMicros]);
      if (expired > 0) this.#trim(key, steadyMs);
    }
    const { putTimes, putDays, putPlaces, putStart } = this.#statements;
    if (times.length > 0) {
      putTimes.run(JSON.stringify(times));
      putDays.run(JSON.stringify(days), day.day);
      putPlaces.run(JSON.stringify(days));
    }
    for (const start of starts)
      putStart.run(start.call, JSON.stringify(start.holds), start.day, start.micros, start.draft, start.mac);
  }

  /** Keeps the newest of the calls that are older than the window: the calls after it are counted from there. */
  #trim(key: string, steadyMs: number): void {
    if (steadyMs - (this.#trimmedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < TRIM_MS) return;
    this.#statements.trim.run(key, steadyMs - WINDOW_MS);
    if (this.#trimmedAtMs.size > MAX_TRIMMED_KEYS) this.#trimmedAtMs.clear();
    this.#trimmedAtMs.set(key, steadyMs);
  }

  /** Releases what calls hold and books what they cost. */
  end(batch: readonly Settlement[], { month, reseal }: EndOptions): Ending {
    const ended = this.#takeStarts(batch);
    const released = new Map<string, { running: number; days: Map<string, [spent: number, reserved: number]> }>();
    const counts = batch.map(({ call, goesOnAs, costMicros = 0 }) => {
      if (call === undefined) return true;
      const start = ended.get(call);
      if (start === undefined) return false;
      if (goesOnAs !== undefined) {
        this.#putAgain(reseal({ call, ...start, draft: JSON.stringify(goesOnAs) }));
        return true;
      }
      for (const [key, hasBudget] of start.holds) {
        let of = released.get(key);
        if (of === undefined) released.set(key, (of = { running: 0, days: new Map() }));
        of.running += 1;
        if (hasBudget === 0 || (start.micros === 0 && costMicros === 0)) continue;
        const [spent, reserved] = of.days.get(start.day) ?? [0, 0];
        of.days.set(start.day, [spent + costMicros, reserved + start.micros]);
      }
      return true;
    });
    const spendings = this.#spendings(batch, ended, month);
    const places = [...released].map(([key, { running }]) => [key, running]);
    const days = [...released].flatMap(([key, of]) => [...of.days].map(([day, sums]) => [key, day, ...sums]));
    if (places.length > 0) this.#statements.freePlaces.run(JSON.stringify(places));
    if (days.length > 0) this.#statements.bookDays.run(JSON.stringify(days));
    return { counts, spendings };
  }

  #takeStarts(batch: readonly Settlement[]): ReadonlyMap<CallId, Ended> {
    const calls = batch.flatMap(({ call }) => (call === undefined ? [] : [call]));
    const ended = new Map<CallId, Ended>();
    if (calls.length === 0) return ended;
    const names = JSON.stringify(calls);
    for (const [call, holds, day, micros] of listOf(this.#statements.loadStarts.get(names)))
      ended.set(Number(call), { holds: parseHolds(holds), day: String(day), micros: Number(micros) });
    if (ended.size > 0) this.#statements.dropStarts.run(names);
    return ended;
  }

  #putAgain({ call, holds, day, micros, draft, mac }: Start): void {
    this.#statements.putStart.run(call, JSON.stringify(holds), day, micros, draft, mac);
  }

  /** In the order of the batch, so that exactly one settlement passes each threshold. */
  #spendings(
    batch: readonly Settlement[],
    ended: ReadonlyMap<CallId, Ended>,
    currentMonth: string,
  ): readonly (readonly Spending[])[] {
    const sums = new Map<string, number>();
    return batch.map(({ call, costMicros = 0, goesOnAs }) => {
      const start = call === undefined ? undefined : ended.get(call);
      if (start === undefined || costMicros === 0 || goesOnAs !== undefined) return [];
      const month = start.day.slice(0, -3);
      if (month < currentMonth) return [];
      return start.holds.flatMap(([key, hasBudget]) => {
        if (hasBudget === 0) return [];
        const id = `${month} ${key}`;
        const beforeMicros = sums.get(id) ?? this.#spentSince(key, month);
        const afterMicros = beforeMicros + costMicros;
        sums.set(id, afterMicros);
        return [{ key, beforeMicros, afterMicros }];
      });
    });
  }

  #spentSince(key: string, month: string): number {
    return Number(rows([this.#statements.spentSince.get(key, month)])[0]?.[0] ?? 0);
  }

  /** Whether the process is registered among those that share the store. */
  isListed(process: number): boolean {
    return this.#statements.isListed.get(process) !== undefined;
  }

  list({ pid, startedAt, namespace }: { pid: number; startedAt: string; namespace: string }): number {
    return Number(this.#statements.list.run(pid, startedAt, namespace).lastInsertRowid);
  }

  beat(process: number): void {
    this.#statements.beat.run(process);
  }

  processes(): readonly { id: number; pid: number; startedAt: string; namespace: string; beat: number }[] {
    return rows(this.#statements.processes.all()).map(([id, pid, startedAt, namespace, beat]) => ({
      id: Number(id),
      pid: Number(pid),
      startedAt: String(startedAt),
      namespace: String(namespace),
      beat: Number(beat),
    }));
  }

  /** Removes the process from the list, unless it still has calls. */
  unlist(process: number): void {
    this.#statements.unlist.run(process, ...callsOf(process));
  }

  startsOf(process: number): readonly Start[] {
    return rows(this.#statements.startsOf.all(...callsOf(process), MAX_DEAD_STARTS)).map(
      ([call, holds, day, micros, draft, mac]) => ({
        call: Number(call),
        holds: parseHolds(holds),
        day: String(day),
        micros: Number(micros),
        draft: String(draft),
        mac: String(mac),
      }),
    );
  }

  /** Imports days and budgets, once, from the file in which earlier versions counted. */
  takeOver(path: string): void {
    const { changes } = this.#db
      .prepare("INSERT OR IGNORE INTO ledger_meta (name, value) VALUES ('limits', 'here')")
      .run();
    if (changes === 0 || !existsSync(path)) return;
    const old = new Database(path);
    try {
      const days = old.prepare("SELECT key, day, n, 0 FROM days").raw().all();
      const spent = old.prepare("SELECT key, month || '-01', 0, micros FROM spent").raw().all();
      const put = this.#db.prepare(
        `INSERT INTO call_days VALUES (?, ?, ?, ?, 0)
        ON CONFLICT (key, day) DO UPDATE SET calls = calls + excluded.calls, spent = spent + excluded.spent`,
      );
      for (const row of rows([...days, ...spent])) put.run([...row]);
    } finally {
      old.close();
    }
  }

  /** After a restart of the machine the steady clock starts at 0: earlier calls count as if they arrived now. */
  adoptBoot(bootId: string, { steadyMs, wallMs }: Moment): void {
    const [row] = rows(this.#db.prepare("SELECT value FROM ledger_meta WHERE name = 'boot'").raw().all());
    if (row?.[0] !== bootId) {
      this.#db.exec(
        `CREATE TEMP TABLE moved AS SELECT key, min(n) AS expired, max(n) AS n FROM call_times GROUP BY key;
        DELETE FROM call_times;
        INSERT INTO call_times SELECT key, ${-WINDOW_MS}, expired FROM moved;
        INSERT INTO call_times SELECT key, ${steadyMs}, n FROM moved;
        DROP TABLE moved`,
      );
      this.#db.prepare("INSERT OR REPLACE INTO ledger_meta (name, value) VALUES ('boot', ?)").run(bootId);
    }
    // Removes keys without a call in the window.
    this.#db
      .prepare("DELETE FROM call_times WHERE key IN (SELECT key FROM call_times GROUP BY key HAVING max(at) <= ?)")
      .run(steadyMs - WINDOW_MS);
    this.#db.exec("DELETE FROM call_places WHERE running = 0");
    // Kept far longer than any limit needs, so that a clock that is wrong for a while deletes no counts.
    const day = new Date(wallMs - KEPT_DAYS * DAY_MS).toISOString().slice(0, 10);
    this.#db.prepare("DELETE FROM call_days WHERE day < ? AND reserved = 0").run(day);
  }
}

function rows(found: readonly unknown[]): readonly Row[] {
  return found.filter((row) => Array.isArray(row));
}

function parseHolds(text: unknown): readonly Hold[] {
  try {
    return toHolds(JSON.parse(String(text)));
  } catch {
    // Not written by a server: its MAC does not match either.
    return [];
  }
}

/** The rows in the JSON text that a statement returns. */
function listOf(row: unknown): readonly Row[] {
  const [text]: Row = rows([row])[0] ?? [];
  const list: unknown = typeof text === "string" ? JSON.parse(text) : undefined;
  return Array.isArray(list) ? rows(list) : [];
}

const READS = new Set<string>([
  "loadCounts",
  "loadBlocker",
  "loadStarts",
  "spentSince",
  "isListed",
  "processes",
  "startsOf",
]);

const SQL = {
  // One JSON text for all rows: each row that is fetched separately costs more than its JSON.
  loadCounts: `SELECT json_group_array(json_array(asked.value,
      (SELECT n FROM call_times WHERE key = asked.value ORDER BY at DESC LIMIT 1),
      (SELECT max(at) FROM call_times WHERE key = asked.value),
      (SELECT n FROM call_times WHERE key = asked.value AND at <= ?2 ORDER BY at DESC LIMIT 1),
      (SELECT at FROM call_times WHERE key = asked.value AND at > ?2 ORDER BY at LIMIT 1),
      (SELECT running FROM call_places WHERE key = asked.value),
      (SELECT sum(calls) FROM call_days WHERE key = asked.value AND day >= ?3),
      (SELECT sum(spent) FROM call_days WHERE key = asked.value AND day >= ?4),
      (SELECT sum(reserved) FROM call_days WHERE key = asked.value AND day >= ?4)))
    FROM json_each(?1) AS asked`,
  loadBlocker: "SELECT at FROM call_times WHERE key = ? AND at > ? AND n >= ? ORDER BY at LIMIT 1",
  putTimes: `INSERT INTO call_times SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE TRUE
    ON CONFLICT (key, at) DO UPDATE SET n = excluded.n`,
  putDays: `INSERT INTO call_days SELECT value ->> 0, ?2, value ->> 1, 0, value ->> 2 FROM json_each(?1) WHERE TRUE
    ON CONFLICT (key, day) DO UPDATE SET calls = calls + excluded.calls, reserved = reserved + excluded.reserved`,
  putPlaces: `INSERT INTO call_places SELECT value ->> 0, value ->> 1 FROM json_each(?) WHERE TRUE
    ON CONFLICT (key) DO UPDATE SET running = running + excluded.running`,
  putStart: "INSERT INTO call_starts (call, holds, day, micros, draft, mac) VALUES (?, ?, ?, ?, ?, ?)",
  trim: `DELETE FROM call_times WHERE key = ?1
    AND at < (SELECT max(at) FROM call_times WHERE key = ?1 AND at <= ?2)`,
  loadStarts: `SELECT json_group_array(json_array(call, holds, day, micros)) FROM call_starts
    WHERE call IN (SELECT value FROM json_each(?))`,
  dropStarts: "DELETE FROM call_starts WHERE call IN (SELECT value FROM json_each(?))",
  freePlaces: `UPDATE call_places SET running = max(0, running - freed.n)
    FROM (SELECT value ->> 0 AS key, value ->> 1 AS n FROM json_each(?)) AS freed WHERE call_places.key = freed.key`,
  bookDays: `INSERT INTO call_days SELECT value ->> 0, value ->> 1, 0, value ->> 2, -(value ->> 3) FROM json_each(?) WHERE TRUE
    ON CONFLICT (key, day) DO UPDATE SET spent = spent + excluded.spent, reserved = max(0, reserved + excluded.reserved)`,
  spentSince: "SELECT sum(spent) FROM call_days WHERE key = ? AND day >= ?",
  isListed: "SELECT id FROM call_servers WHERE id = ?",
  list: "INSERT INTO call_servers (pid, started, namespace, beat) VALUES (?, ?, ?, 0)",
  beat: "UPDATE call_servers SET beat = beat + 1 WHERE id = ?",
  processes: "SELECT id, pid, started, namespace, beat FROM call_servers",
  unlist:
    "DELETE FROM call_servers WHERE id = ? AND NOT EXISTS (SELECT 1 FROM call_starts WHERE call >= ? AND call < ?)",
  startsOf: "SELECT call, holds, day, micros, draft, mac FROM call_starts WHERE call >= ? AND call < ? LIMIT ?",
} as const;
