import { existsSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { OwlError } from "../../errors/owl-error.ts";
import { GENESIS } from "../chain.ts";
import { type Cut, readCut } from "../checkpoint.ts";
import type { LedgerKeys } from "../keys.ts";
import type { LedgerHead } from "../ledger.ts";
import {
  countQuery,
  type LedgerFilter,
  type LedgerStats,
  listQuery,
  type Page,
  type SqlDialect,
  type TimelineCount,
  timelineQuery,
  type TimelineSpan,
} from "../query.ts";
import type { LedgerRow } from "../row.ts";
import { toRow } from "../stored-row.ts";
import { collectStats, toCount, toTimelineCount } from "../stats.ts";
import type { LedgerReader } from "../store.ts";
import { type ChainRecord, type ChainSource, verifyChain, type VerifyOptions, type VerifyReport } from "../verify.ts";
import { openConnection, type SqliteConnection } from "./connection.ts";
import { RECORDS_SQL, ROW_COLUMNS } from "./schema.ts";
import { storeError } from "./store-error.ts";

export const SQLITE_DIALECT: SqlDialect = {
  placeholder: () => "?",
  globOperator: "GLOB",
  globPattern: (glob) => glob.replace(/\[/g, "[[]"),
  likeOperator: "LIKE",
  // The database divides whole numbers so by itself.
  floor: (quotient) => quotient,
  day: "strftime('%Y-%m-%d', time / 1000, 'unixepoch')",
};

export interface SqliteReaderOptions {
  readonly path: string;
  /** Only verification needs them. */
  readonly loadKeys: () => LedgerKeys;
}

/** Looks into a ledger, also beside servers that write to it. No read lasts longer than a page, so that the log can be reset. */
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
    const { sql, values } = listQuery(ROW_COLUMNS, { filter, page, dialect: SQLITE_DIALECT });
    return this.#objects(sql, values).map(toRow);
  }

  async get(seq: number): Promise<LedgerRow | undefined> {
    return this.#objects(`SELECT ${ROW_COLUMNS} FROM ledger WHERE seq = ?`, [seq]).map(toRow)[0];
  }

  stats(filter: LedgerFilter): Promise<LedgerStats> {
    return collectStats(filter, SQLITE_DIALECT, async ({ sql, values }) => this.#objects(sql, values).map(toCount));
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

  /** Between two pages the thread hears what else is asked of it, its end above all. */
  async records(afterSeq: number, limit: number): Promise<readonly ChainRecord[]> {
    await setImmediate();
    return this.#raw(RECORDS_SQL, [afterSeq, limit]).map(([seq, hash, encoded]) => ({
      seq: Number(seq),
      hash: String(hash),
      encoded: String(encoded),
    }));
  }

  async latestCut(): Promise<Cut | undefined> {
    const [row] = this.#raw("SELECT result FROM ledger WHERE seq = (SELECT max(seq) FROM ledger WHERE kind = 'cut')");
    return row === undefined ? undefined : readCut(this.#options.loadKeys(), String(row[0]));
  }

  async chainKeyId(): Promise<string | undefined> {
    const [row] = this.#raw("SELECT value FROM ledger_meta WHERE name = 'chain_key_id'");
    return row === undefined ? undefined : String(row[0]);
  }

  async integrityProblems(): Promise<readonly string[]> {
    try {
      const found = this.#raw("PRAGMA integrity_check(10)").map(([text]) => String(text));
      return found.filter((text) => text !== "ok");
    } catch (error) {
      if (this.#isClosed) throw error;
      return [storeError(error, this.#options.path).message];
    }
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
      // A file that is gone stays readable through the old handle: the next query looks again.
      if (!existsSync(path)) this.#letGo();
      throw storeError(error, path);
    }
  }
}
