import { randomBytes } from "node:crypto";
import { OwlError } from "../../../errors/owl-error.ts";
import type { LedgerKeys } from "../../ledger/keys.ts";
import {
  openLedgerDatabase,
  PostgresStore,
  type PostgresStoreOptions,
  type RowsAndMore,
} from "../../ledger/postgres/postgres-store.ts";
import { COLUMNS, type Draft } from "../../ledger/row.ts";
import type { CallId, Settled, Settlement, Spending } from "../../ledger/store.ts";
import type { Database, PostgresClient } from "../../../platform/postgres-database.ts";
import { Calendar, type Day, type Clock } from "../calendar.ts";
import type { Counter } from "../../policy/terms.ts";
import {
  admitBatch,
  CALLS_PER_PROCESS,
  callsOf,
  keysOf,
  sealStart,
  type Start,
  toHolds,
  usedBy,
} from "../admit-batch.ts";
import {
  type Admission,
  type AdmitRequest,
  type GovernanceStore,
  type Used,
  settlementOfDead,
} from "../governance-store.ts";
import { type KeyCounts, type Moment, toKeyCounts, WINDOW_MS } from "../key-counts.ts";
import { CALL_MIGRATIONS } from "./schema.ts";

const TRIM_MS = 1000;
const MAX_TRIMMED_KEYS = 10_000;
const MAX_DEAD_STARTS = 500;
const BEATS_PER_LEASE = 5;
const TIDY_MS = 3_600_000;

const SETTLE_SQL = "SELECT owlclaw_call_settle_1($1, $2, $3, $4) AS reply";
const NOW_SQL = "floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";
/** Time and duration are in milliseconds and microseconds: two calls with one trace id do not share both. */
const ROW_SQL =
  "SELECT FROM ledger WHERE time = $1 AND trace_id = $2 AND duration_us = $3 AND principal = $4 AND name = $5";
/** A draft has no `seq`. */
const ROW_COLUMNS = (["time", "trace_id", "duration_us", "principal", "name"] as const).map(
  (name) => COLUMNS.indexOf(name) - 1,
);
const EPOCH_SQL = "SELECT owlclaw_call_epoch_1() AS epoch";
const STARTS_SQL = "SELECT call, holds, day, micros, draft, mac FROM call_starts";
/** Deletes what no limit needs any more. 400 days is far longer than any limit needs. */
const TIDY_SQL = `WITH days AS (DELETE FROM call_days WHERE day < to_char(now() - INTERVAL '400 days', 'YYYY-MM-DD') AND reserved = 0)
  DELETE FROM call_times t WHERE NOT EXISTS (
    SELECT FROM call_times x, call_clock WHERE x.key = t.key AND x.at > call_clock.last - 60000
  )`;

export interface PostgresGovernanceStoreOptions extends PostgresStoreOptions {
  /** Read in every transaction: a reload may change it. */
  readonly timeZone: () => string;
  /** A server that is silent for longer is treated as dead. */
  readonly leaseMs: number;
  /** For tests. Default: the clock of the database, which all servers share. */
  readonly clock?: Clock;
}

/**
 * The governance store in PostgreSQL. The code that counts for SQLite also counts here, between two round trips: the
 * first takes the lock and reads the counts, the second writes them and commits.
 */
export class PostgresGovernanceStore extends PostgresStore implements GovernanceStore {
  readonly #options: PostgresGovernanceStoreOptions;
  readonly #keys: LedgerKeys;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #trimmedAtMs = new Map<string, number>();
  #calendar: Calendar;
  #process = 0;
  #lastCall = 0;
  /** How far the clock of the database is ahead of this server's. */
  #aheadMs = 0;
  /** Calls whose admission was sent but not answered: what they may hold is released. */
  #doubtful: CallId[] = [];
  /** Calls in flight. Admissions that a crash of the database has lost are restored from them. */
  readonly #running = new Map<CallId, Start>();
  /** Changes when the database crashes. */
  #epoch: unknown;
  /** Rows that were sent and not answered: the database may have stored them before it crashed. */
  readonly #unanswered = new Map<CallId, Draft>();
  #settling: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  private constructor(database: Database, options: PostgresGovernanceStoreOptions) {
    super(database, options);
    this.#options = options;
    this.#keys = options.keys;
    this.#calendar = new Calendar(options.timeZone());
    const attempt = (act: () => Promise<unknown>) => () => void act().catch(() => undefined);
    this.#timers = [
      setInterval(
        attempt(() => this.#beat()),
        Math.min(options.leaseMs / BEATS_PER_LEASE, TIDY_MS),
      ).unref(),
      setInterval(
        attempt(() => database.query(TIDY_SQL)),
        TIDY_MS,
      ).unref(),
    ];
  }

  static async open(options: PostgresGovernanceStoreOptions): Promise<PostgresGovernanceStore> {
    const database = await openLedgerDatabase(options);
    const store = new PostgresGovernanceStore(database, options);
    try {
      await database.migrate("calls", CALL_MIGRATIONS);
      store.#process = await list(database);
      store.#epoch = await readEpoch(database);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** The id of this server in the list of servers. */
  get processId(): number {
    return this.#process;
  }

  async admit(batch: readonly AdmitRequest[]): Promise<readonly Admission[]> {
    const calls: CallId[] = [];
    const nextCall = (): CallId => {
      const call = this.#process * CALLS_PER_PROCESS + (this.#lastCall += 1);
      calls.push(call);
      return call;
    };
    try {
      await this.#giveBackDoubtful();
      for (;;) {
        const admitted = await this.#counted(keysOf(batch.map(({ counters }) => counters)), async (found, client) => {
          if (found.epoch !== this.#epoch) return { result: undefined };
          if (!found.isListed) await this.#listAgain(client);
          const { counts, moment } = found;
          const result = admitBatch(batch, { counts, moment, keys: this.#keys, nextCall });
          return { result, write: { counts: this.#written(found), starts: JSON.stringify(result.starts) } };
        });
        if (admitted !== undefined) {
          for (const start of admitted.starts) this.#running.set(start.call, start);
          return admitted.admissions;
        }
        await this.#restoreAfterCrash();
      }
    } catch (error) {
      this.#doubtful.push(...calls);
      throw error;
    }
  }

  usage(counters: readonly Counter[]): Promise<readonly Used[]> {
    return this.#counted(keysOf([counters]), async (found) => ({ result: usedBy(counters, found) }));
  }

  /** Settlements run one after another, so that a call is not restored while another batch settles it. */
  settle(batch: readonly Settlement[]): Promise<Settled> {
    return this.#inTurn(async () => {
      for (const { call, draft, goesOnAs } of batch)
        if (call !== undefined && draft !== undefined && goesOnAs === undefined) this.#unanswered.set(call, draft);
      const settled = await this.#settle(batch);
      for (const { call } of batch) if (call !== undefined) this.#unanswered.delete(call);
      return settled;
    });
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#settling.then(act);
    this.#settling = turn.catch(() => undefined);
    return turn;
  }

  async #settle(batch: readonly Settlement[]): Promise<Settled> {
    if (this.#isClosed) throw closed();
    let counts = batch.map(() => true);
    let epoch = this.#epoch;
    const drafts = (): RowsAndMore["drafts"] =>
      batch.flatMap(({ draft }, index) => (draft !== undefined && counts[index] === true ? [draft] : []));
    const more = (): string =>
      JSON.stringify(
        batch.flatMap(({ call, costMicros = 0, goesOnAs }, index) =>
          call === undefined || goesOnAs !== undefined || counts[index] !== true ? [] : [[call, costMicros]],
        ),
      );
    const isPlain = batch.every(({ goesOnAs }) => goesOnAs === undefined);
    const { appended, reply } = await this.appendBy(SETTLE_SQL, {
      expected: isPlain ? { drafts: drafts(), more: more() } : undefined,
      look: async (client) => {
        let starts = await startsOf(client, batch);
        if (batch.some(({ call }) => call !== undefined && !starts.has(call) && this.#running.has(call))) {
          epoch = await this.#restoreIfCrashed(client);
          starts = await startsOf(client, batch);
        }
        counts = batch.map(({ call }) => call === undefined || starts.has(call));
        for (const { call, goesOnAs } of batch) {
          const start = call === undefined ? undefined : starts.get(call);
          if (start === undefined || goesOnAs === undefined || call === undefined) continue;
          const begun = sealStart(this.#keys, { ...start, draft: JSON.stringify(goesOnAs) });
          await replaceStart(client, begun);
          if (this.#running.has(call)) this.#running.set(call, begun);
        }
        return { drafts: drafts(), more: more() };
      },
    });
    this.#epoch = epoch;
    for (const { call, goesOnAs } of batch)
      if (call !== undefined && goesOnAs === undefined) this.#running.delete(call);
    let next = 0;
    const seqs = batch.map(({ draft }, index) =>
      draft !== undefined && counts[index] === true ? (appended.seqs[next++] ?? 0) : 0,
    );
    return { ...appended, seqs, spendings: spendingsOf(batch, reply, this.#moment().day.month) };
  }

  async recover(): Promise<number> {
    const { leaseMs } = this.#options;
    const dead = await this.database.query(
      `SELECT id FROM call_servers WHERE id <> $1 AND beat_at < ${NOW_SQL} - $2::BIGINT`,
      [this.#process, leaseMs],
    );
    let ended = 0;
    for (const row of dead) {
      const id = Number(columnOf(row, "id"));
      const range = callsOf(id);
      for (;;) {
        const found = await this.database.query(
          `${STARTS_SQL} WHERE call >= $1 AND call < $2 LIMIT ${MAX_DEAD_STARTS}`,
          range,
        );
        if (found.length === 0) break;
        // Of several servers that find the same calls, the first one settles them.
        await this.settle(found.map((start) => settlementOfDead(this.#keys, toStart(start))));
        ended += found.length;
      }
      await this.#unlist(id);
    }
    return ended;
  }

  override async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#stop();
    try {
      // A server that still has calls stays on the list: another server settles them.
      if (this.#process !== 0) await this.#unlist(this.#process);
    } catch {
      // Its lease expires.
    } finally {
      await super.close();
    }
  }

  /** Leaves everything as a killed server would; for tests. */
  async abandon(): Promise<void> {
    this.#stop();
    await super.close();
  }

  #stop(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** One transaction that counts, in two round trips: the first reads, the second writes what `act` returns. */
  async #counted<T>(
    keys: ReadonlyMap<string, number>,
    act: (found: Found, client: PostgresClient) => Promise<{ readonly result: T; readonly write?: Written }>,
  ): Promise<T> {
    if (this.#isClosed) throw closed();
    return this.database.transaction(async (client) => {
      const { result, write } = await act(await this.#load(client, keys), client);
      const values = write && [this.#process, quoted(write.counts), quoted(write.starts)].join();
      const sql = values === undefined ? "" : `SELECT owlclaw_call_add_1(${values});`;
      await client.query(`${sql} COMMIT`);
      return result;
    });
  }

  async #load(client: PostgresClient, keys: ReadonlyMap<string, number>): Promise<Found> {
    const asked = quoted(JSON.stringify([...keys.keys()]));
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED;";
    let { day } = this.#moment();
    for (;;) {
      const givenMs = this.#options.clock === undefined ? "NULL" : Math.floor(this.#options.clock.steadyMs());
      const values = [this.#process, asked, quoted(day.day), quoted(day.month), givenMs].join();
      const reply = await lastReply(client, `${begin} SELECT owlclaw_call_counts_1(${values}) AS reply`);
      begin = "";
      this.#aheadMs = Number(columnOf(reply, "wall")) - Date.now();
      const moment = { ...this.#moment(), steadyMs: Number(columnOf(reply, "steady")) };
      // The day changed between query and reply, or the clock of the database was not known yet.
      if (moment.day.day !== day.day) {
        day = moment.day;
        continue;
      }
      const counts = new Map<string, KeyCounts>();
      for (const row of listOf(columnOf(reply, "counts"))) {
        const found = toKeyCounts(listOf(row));
        counts.set(found.key, found);
        await loadBlocker(client, found, { limit: keys.get(found.key), fromMs: moment.steadyMs - WINDOW_MS });
      }
      return {
        counts,
        moment,
        wallMs: Number(columnOf(reply, "wall")),
        isListed: columnOf(reply, "listed") === true,
        epoch: columnOf(reply, "epoch"),
      };
    }
  }

  #written({ counts, moment, wallMs }: Found): string {
    const { steadyMs, day } = moment;
    const added = [...counts.values()].filter(({ addedCalls }) => addedCalls > 0);
    return JSON.stringify({
      day: day.day,
      steady: steadyMs,
      now: wallMs,
      wall: this.#options.clock === undefined ? wallMs : null,
      // An entry older than all calls, from which the calls of the first minute are counted.
      times: added.flatMap(({ key, last, newestAtMs, addedCalls }) => {
        const time = [key, Math.max(steadyMs, newestAtMs), last];
        return last === addedCalls ? [[key, -WINDOW_MS, 0], time] : [time];
      }),
      days: added.map(({ key, addedCalls, addedMicros }) => [key, addedCalls, addedMicros]),
      trims: added.filter(({ key, expired }) => expired > 0 && this.#isDue(key, steadyMs)).map(({ key }) => key),
    });
  }

  #isDue(key: string, steadyMs: number): boolean {
    if (steadyMs - (this.#trimmedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < TRIM_MS) return false;
    if (this.#trimmedAtMs.size > MAX_TRIMMED_KEYS) this.#trimmedAtMs.clear();
    this.#trimmedAtMs.set(key, steadyMs);
    return true;
  }

  /** Waits for the lock of admissions: an admission that was still running in the database has ended then. */
  async #giveBackDoubtful(): Promise<void> {
    if (this.#doubtful.length === 0) return;
    const calls = this.#doubtful;
    await this.#counted(new Map(), async () => ({ result: undefined }));
    await this.settle(calls.map((call) => ({ call })));
    this.#doubtful = this.#doubtful.filter((call) => !calls.includes(call));
  }

  #restoreAfterCrash(): Promise<void> {
    return this.#inTurn(() =>
      this.database.transaction(async (client) => {
        await client.query("BEGIN");
        const epoch = await this.#restoreIfCrashed(client);
        await client.query("COMMIT");
        this.#epoch = epoch;
      }),
    );
  }

  /** The calls in flight on this server must count: a crash of the database may have lost their admissions. */
  async #restoreIfCrashed(client: PostgresClient): Promise<unknown> {
    const { rows } = await client.query<Record<string, unknown>>(EPOCH_SQL);
    const epoch = columnOf(rows[0], "epoch");
    if (epoch === this.#epoch) return epoch;
    const givenMs = this.#options.clock === undefined ? null : Math.floor(this.#options.clock.steadyMs());
    // Calls under an earlier id of this server were settled when it was treated as dead.
    const [from, to] = callsOf(this.#process);
    const ended = await this.#endedCalls(client);
    const starts = [...this.#running.values()].filter(({ call }) => call >= from && call < to && !ended.has(call));
    await client.query("SELECT owlclaw_call_restore_1($1, $2, $3)", [this.#process, JSON.stringify(starts), givenMs]);
    return epoch;
  }

  /** The calls whose row is in the ledger although no answer said so: they must not count again. */
  async #endedCalls(client: PostgresClient): Promise<ReadonlySet<CallId>> {
    const ended = new Set<CallId>();
    for (const [call, draft] of this.#unanswered) {
      const { rows } = await client.query(
        ROW_SQL,
        ROW_COLUMNS.map((column) => draft[column] ?? null),
      );
      if (rows.length > 0) ended.add(call);
    }
    return ended;
  }

  /** The server was silent for longer than its lease, and another server has settled its calls. */
  async #listAgain(client: PostgresClient): Promise<void> {
    // If a crash lost this row, calls that the crash has lost could not be told apart from calls that another server
    // has settled.
    await client.query("SET LOCAL synchronous_commit = on");
    const { rows } = await client.query<Record<string, unknown>>(LIST_SQL);
    this.#process = Number(rows[0]?.["id"]);
    this.#lastCall = 0;
  }

  async #beat(): Promise<void> {
    await this.database.query(`UPDATE call_servers SET beat_at = ${NOW_SQL} WHERE id = $1`, [this.#process]);
    if ((await readEpoch(this.database)) !== this.#epoch) await this.#restoreAfterCrash();
  }

  #unlist(id: number): Promise<unknown> {
    const sql =
      "DELETE FROM call_servers WHERE id = $1 AND NOT EXISTS (SELECT FROM call_starts WHERE call >= $2 AND call < $3)";
    return this.database.query(sql, [id, ...callsOf(id)]);
  }

  #moment(): Moment {
    const { clock, timeZone } = this.#options;
    if (timeZone() !== this.#calendar.timeZone) this.#calendar = new Calendar(timeZone());
    const wallMs = clock?.wallMs() ?? Date.now() + this.#aheadMs;
    const day: Day = this.#calendar.at(wallMs);
    return { wallMs, steadyMs: Math.floor(clock?.steadyMs() ?? wallMs), day };
  }
}

/**
 * JSON for the function that writes a batch. The starts are separate, because the function reads the counts several
 * times.
 */
interface Written {
  readonly counts: string;
  readonly starts: string;
}

interface Found {
  readonly counts: ReadonlyMap<string, KeyCounts>;
  readonly moment: Moment;
  readonly wallMs: number;
  readonly isListed: boolean;
  readonly epoch: unknown;
}

const LIST_SQL = `INSERT INTO call_servers (beat_at) VALUES (${NOW_SQL}) RETURNING id`;

async function list(database: Database): Promise<number> {
  const [row] = await database.query(LIST_SQL);
  return Number(columnOf(row, "id"));
}

async function readEpoch(database: Database): Promise<unknown> {
  const [row] = await database.query(EPOCH_SQL);
  return columnOf(row, "epoch");
}

async function startsOf(client: PostgresClient, batch: readonly Settlement[]): Promise<ReadonlyMap<CallId, Start>> {
  const calls = batch.flatMap(({ call }) => (call === undefined ? [] : [call]));
  const { rows } = await client.query<Record<string, unknown>>(`${STARTS_SQL} WHERE call = ANY($1::BIGINT[])`, [calls]);
  return new Map(rows.map(toStart).map((start) => [start.call, start]));
}

async function replaceStart(client: PostgresClient, { call, draft, mac }: Start): Promise<void> {
  await client.query("UPDATE call_starts SET draft = $2, mac = $3 WHERE call = $1", [call, draft, mac]);
}

/** The window holds more calls than the limit only after the limit was lowered. */
async function loadBlocker(
  client: PostgresClient,
  counts: KeyCounts,
  { limit, fromMs }: { readonly limit: number | undefined; readonly fromMs: number },
): Promise<void> {
  const { key, last, expired } = counts;
  if (limit === undefined || last - expired <= limit) return;
  const sql = "SELECT at FROM call_times WHERE key = $1 AND at > $2 AND n >= $3 ORDER BY at LIMIT 1";
  const { rows } = await client.query<Record<string, unknown>>(sql, [key, fromMs, last + 1 - limit]);
  counts.blockedByMs = Number(rows[0]?.["at"]);
}

/** In the order of the batch, so that exactly one settlement passes each threshold. */
function spendingsOf(
  batch: readonly Settlement[],
  reply: unknown,
  currentMonth: string,
): readonly (readonly Spending[])[] {
  const sums = new Map<string, number>();
  const byCall = new Map<number, unknown[][]>();
  for (const row of listOf(reply).map(listOf)) {
    const call = Number(row[0]);
    byCall.set(call, [...(byCall.get(call) ?? []), [...row]]);
  }
  return batch.map(({ call, costMicros = 0 }) =>
    (call === undefined ? [] : (byCall.get(call) ?? [])).flatMap(([, key, month, before]) => {
      if (String(month) < currentMonth) return [];
      const id = `${String(month)} ${String(key)}`;
      const beforeMicros = sums.get(id) ?? Number(before);
      const afterMicros = beforeMicros + costMicros;
      sums.set(id, afterMicros);
      return [{ key: String(key), beforeMicros, afterMicros }];
    }),
  );
}

function toStart(row: unknown): Start {
  return {
    call: Number(columnOf(row, "call")),
    holds: toHolds(columnOf(row, "holds")),
    day: String(columnOf(row, "day")),
    micros: Number(columnOf(row, "micros")),
    draft: String(columnOf(row, "draft")),
    mac: String(columnOf(row, "mac")),
  };
}

/** The reply of the last of several statements in one message, a result that the driver's types do not describe. */
async function lastReply(client: PostgresClient, sql: string): Promise<unknown> {
  const results: unknown = await client.query(sql);
  const last: unknown = Array.isArray(results) ? results.at(-1) : results;
  return columnOf(listOf(columnOf(last, "rows"))[0], "reply");
}

/** Random for each process, so that no text from a caller can end the quotation. */
const TAG = `$owl${randomBytes(9).toString("hex")}$`;

function quoted(text: string): string {
  return `${TAG}${text}${TAG}`;
}

function columnOf(row: unknown, name: string): unknown {
  return typeof row === "object" && row !== null ? Reflect.get(row, name) : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function closed(): OwlError {
  return new OwlError("store_unavailable", "the governance store is closed", {
    hint: "The server is stopping.",
    retryable: false,
  });
}
