import { isUtf8 } from "node:buffer";
import { existsSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import Database from "libsql";
import { OwlError } from "../../../errors/owl-error.ts";
import { GENESIS } from "../chain.ts";
import { type Cut, readCut } from "../checkpoint.ts";
import type { LedgerKeys } from "../keys.ts";
import type { LedgerHead } from "../ledger.ts";
import {
  countQuery,
  type DayShift,
  type LedgerFilter,
  type LedgerStats,
  listQuery,
  type Page,
  type SqlDialect,
  type TimelineCount,
  timelineQuery,
  type TimelineSpan,
  collectStats,
  toCount,
  toTimelineCount,
} from "../query.ts";
import { type LedgerRow, toRow } from "../row.ts";
import type { LedgerReader } from "../store.ts";
import { type ChainRecord, type ChainSource, verifyChain, type VerifyOptions, type VerifyReport } from "../verify.ts";
import {
  openConnection,
  type SqliteConnection,
  MIGRATIONS,
  RECORDS_SQL,
  ROW_COLUMNS,
  WHOLE_ROW,
  storeError,
} from "./connection.ts";

export const SQLITE_DIALECT: SqlDialect = {
  placeholder: () => "?",
  globOperator: "GLOB",
  globPattern: (glob) => glob.replace(/\[/g, "[[]"),
  likeOperator: "LIKE",
  // SQLite's division of whole numbers gives a whole number.
  floor: (quotient) => quotient,
  day: (timeMs) => `strftime('%Y-%m-%d', ${timeMs} / 1000, 'unixepoch')`,
};

export interface SqliteReaderOptions {
  readonly path: string;
  /** Only verification needs them. */
  readonly loadKeys: () => LedgerKeys;
}

const LATEST_CUT_SQL =
  "SELECT CAST(result AS BLOB) FROM ledger WHERE seq = (SELECT max(seq) FROM ledger WHERE kind = 'cut')";

/** Reads a ledger, also while servers write to it. No read lasts longer than a page, so that the log can be reset. */
export class SqliteReader implements LedgerReader, ChainSource {
  readonly #options: SqliteReaderOptions;
  #db: SqliteConnection | undefined;
  #isClosed = false;

  constructor(options: SqliteReaderOptions) {
    this.#options = options;
  }

  async head(): Promise<LedgerHead> {
    const [row] = this.#raw("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1");
    return row === undefined ? GENESIS : { seq: Number(row[0]), hash: String(row[1]) };
  }

  async list(filter: LedgerFilter, page: Page): Promise<readonly LedgerRow[]> {
    const { sql, values } = listQuery(WHOLE_ROW, { filter, page, dialect: SQLITE_DIALECT });
    return this.#raw(sql, values).map(([encoded]) => decodeRow(encoded));
  }

  async get(seq: number): Promise<LedgerRow | undefined> {
    const [row] = this.#raw(`SELECT ${WHOLE_ROW} FROM ledger WHERE seq = ?`, [seq]);
    return row && decodeRow(row[0]);
  }

  stats(filter: LedgerFilter, dayShifts: readonly DayShift[] = []): Promise<LedgerStats> {
    const query = { filter, dialect: SQLITE_DIALECT, dayShifts };
    return collectStats(query, async ({ sql, values }) => this.#objects(sql, values).map(toCount));
  }

  async count(filter: LedgerFilter): Promise<number> {
    const { sql, values } = countQuery(filter, SQLITE_DIALECT);
    return toCount(this.#objects(sql, values)[0]).calls;
  }

  async timeline(filter: LedgerFilter, span: TimelineSpan): Promise<readonly TimelineCount[]> {
    const { sql, values } = timelineQuery(filter, span, SQLITE_DIALECT);
    return this.#objects(sql, values).map(toTimelineCount);
  }

  verify(options: VerifyOptions): Promise<VerifyReport> {
    return verifyChain(this, this.#options.loadKeys(), options);
  }

  /** Between two pages the thread can handle other messages, above all `close`. */
  async records(afterSeq: number, limit: number): Promise<readonly ChainRecord[]> {
    await setImmediate();
    return this.#raw(RECORDS_SQL, [afterSeq, limit]).map(([seq, hash, encoded]) => ({
      seq: Number(seq),
      hash: toText(hash),
      encoded: toText(encoded),
    }));
  }

  async latestCut(): Promise<Cut | undefined> {
    const [row] = this.#raw(LATEST_CUT_SQL);
    return row === undefined ? undefined : readCut(this.#options.loadKeys(), toText(row[0]));
  }

  async chainKeyId(): Promise<string | undefined> {
    const [row] = this.#raw("SELECT CAST(value AS BLOB) FROM ledger_meta WHERE name = 'chain_key_id'");
    return row === undefined ? undefined : toText(row[0]);
  }

  async integrityProblems(): Promise<readonly string[]> {
    try {
      const found = this.#raw("PRAGMA integrity_check(10)").map(([text]) => String(text));
      return [...found.filter((text) => text !== "ok"), ...this.#foreignObjects()];
    } catch (error) {
      if (this.#isClosed) throw error;
      return [storeError(error, this.#options.path).message];
    }
  }

  async strayRows(): Promise<number> {
    const [row] = this.#raw("SELECT count(*) FROM ledger WHERE seq < 1");
    return Number(row?.[0] ?? 0);
  }

  /**
   * Triggers, views and changed tables: objects that the migrations did not make can change what is written and shown.
   */
  #foreignObjects(): readonly string[] {
    const found = this.#raw(SCHEMA_SQL);
    const own = new Map(ownSchema().map(([type, name, sql]) => [`${String(type)} ${String(name)}`, sql]));
    const named = found.map(([type, name, sql]) => ({ key: `${String(type)} ${String(name)}`, sql }));
    const foreign = named.filter(({ key, sql }) => own.get(key) !== sql).map(({ key }) => key);
    const missing = [...own.keys()].filter((key) => !named.some((each) => each.key === key));
    return [
      ...foreign.map((key) => `the file holds a ${key} that OwlClaw did not make`),
      ...missing.map((key) => `the ${key} is missing`),
    ];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#letGo();
  }

  #letGo(): void {
    this.#db?.close();
    this.#db = undefined;
  }

  #raw(sql: string, values: readonly unknown[] = []): readonly (readonly unknown[])[] {
    return this.#run((db) => db.prepare(sql).raw().all(values)).filter((row) => Array.isArray(row));
  }

  #objects(sql: string, values: readonly unknown[]): readonly unknown[] {
    return this.#run((db) => db.prepare(sql).all(values));
  }

  #run(query: (db: SqliteConnection) => unknown[]): unknown[] {
    const { path } = this.#options;
    if (this.#isClosed) throw new OwlError("shutting_down", "the ledger was closed meanwhile");
    try {
      this.#db ??= openConnection({ path, mode: "read" });
      return query(this.#db);
    } catch (error) {
      // A deleted file stays readable through the open connection: the next query opens the path again.
      if (!existsSync(path)) this.#letGo();
      throw storeError(error, path);
    }
  }
}

const SCHEMA_SQL = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name LIMIT 1000";

/** The schema that the migrations make. */
function ownSchema(): readonly (readonly unknown[])[] {
  const db = new Database(":memory:");
  try {
    for (const step of MIGRATIONS) db.exec(step);
    return db
      .prepare(SCHEMA_SQL)
      .raw()
      .all()
      .filter((row) => Array.isArray(row));
  } finally {
    db.close();
  }
}

/** Rows that were tampered with must still be shown: invalid UTF-8 becomes a replacement character. */
function decodeRow(encoded: unknown): LedgerRow {
  const text = encoded instanceof Uint8Array ? new TextDecoder().decode(encoded) : String(encoded);
  const values: unknown = JSON.parse(text);
  if (!Array.isArray(values)) throw new TypeError("a row is a list of values");
  return toRow(Object.fromEntries(ROW_COLUMNS.map((name, index) => [name, values[index]])));
}

/** Invalid UTF-8 is read as an empty text, which matches nothing that was ever written. */
function toText(value: unknown): string {
  if (!(value instanceof Uint8Array)) return String(value);
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return isUtf8(bytes) ? bytes.toString("utf8") : "";
}
