import type { Database } from "../../../platform/postgres-database.ts";
import { encodeRow, GENESIS } from "../chain.ts";
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
import { type LedgerRow, toDraft, toRow } from "../row.ts";
import type { LedgerReader } from "../store.ts";
import { type ChainRecord, type ChainSource, verifyChain, type VerifyOptions, type VerifyReport } from "../verify.ts";
import { APPEND_SOURCE, HEAD_SQL, RECORDS_SQL, ROW_COLUMNS } from "./schema.ts";

export const POSTGRES_DIALECT: SqlDialect = {
  placeholder: (position) => `$${position}`,
  globOperator: "LIKE",
  globPattern: (glob) =>
    glob
      .replace(/[\\%_]/g, String.raw`\$&`)
      .replaceAll("*", "%")
      .replaceAll("?", "_"),
  likeOperator: "ILIKE",
  floor: (quotient) => `FLOOR(${quotient})`,
  day: (timeMs) => `to_char(to_timestamp(${timeMs} / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
};

/** Reads the shared ledger. */
export class PostgresReader implements LedgerReader, ChainSource {
  readonly #database: Database;
  readonly #loadKeys: () => LedgerKeys;

  constructor(database: Database, loadKeys: () => LedgerKeys) {
    this.#database = database;
    this.#loadKeys = loadKeys;
  }

  async head(): Promise<LedgerHead> {
    return toHead((await this.#database.query(HEAD_SQL))[0]);
  }

  async list(filter: LedgerFilter, page: Page): Promise<readonly LedgerRow[]> {
    const { sql, values } = listQuery(ROW_COLUMNS, { filter, page, dialect: POSTGRES_DIALECT });
    return (await this.#database.query(sql, values)).map(toRow);
  }

  async get(seq: number): Promise<LedgerRow | undefined> {
    return (await this.#database.query(`SELECT ${ROW_COLUMNS} FROM ledger WHERE seq = $1`, [seq])).map(toRow)[0];
  }

  stats(filter: LedgerFilter, dayShifts: readonly DayShift[] = []): Promise<LedgerStats> {
    const query = { filter, dialect: POSTGRES_DIALECT, dayShifts };
    return collectStats(query, async ({ sql, values }) => (await this.#database.query(sql, values)).map(toCount));
  }

  async count(filter: LedgerFilter): Promise<number> {
    const { sql, values } = countQuery(filter, POSTGRES_DIALECT);
    return toCount((await this.#database.query(sql, values))[0]).calls;
  }

  async timeline(filter: LedgerFilter, span: TimelineSpan): Promise<readonly TimelineCount[]> {
    const { sql, values } = timelineQuery(filter, span, POSTGRES_DIALECT);
    return (await this.#database.query(sql, values)).map(toTimelineCount);
  }

  verify(options: VerifyOptions): Promise<VerifyReport> {
    return verifyChain(this, this.#loadKeys(), options);
  }

  async records(afterSeq: number, limit: number): Promise<readonly ChainRecord[]> {
    const rows = (await this.#database.query(RECORDS_SQL, [afterSeq, limit])).map(toRow);
    return rows.map((row) => ({ seq: row.seq, hash: row.hash, encoded: encodeRow(row.seq, toDraft(row)) }));
  }

  async latestCut(): Promise<Cut | undefined> {
    const sql = `SELECT ${ROW_COLUMNS} FROM ledger WHERE kind = 'cut' ORDER BY seq DESC LIMIT 1`;
    const [row] = (await this.#database.query(sql)).map(toRow);
    return row === undefined ? undefined : readCut(this.#loadKeys(), row.result);
  }

  async chainKeyId(): Promise<string | undefined> {
    const [row] = await this.#database.query("SELECT value FROM ledger_meta WHERE name = 'chain_key_id'");
    return typeof row === "object" && row !== null ? String(Reflect.get(row, "value")) : undefined;
  }

  async strayRows(): Promise<number> {
    return Number(valueOf((await this.#database.query("SELECT count(*) AS found FROM ledger WHERE seq < 1"))[0]));
  }

  /** Triggers and other objects in the database can change what is written and shown without changing a row. */
  async integrityProblems(): Promise<readonly string[]> {
    const found = (await this.#database.query(FOREIGN_OBJECTS_SQL, [APPEND_SOURCE])).map(valueOf);
    return found.map((name) => `the table ledger has ${String(name)} that OwlClaw did not make`);
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

const FOREIGN_OBJECTS_SQL = `
  SELECT 'a trigger ' || tgname AS found FROM pg_trigger WHERE tgrelid = 'ledger'::regclass AND NOT tgisinternal
  UNION ALL SELECT 'a rule ' || rulename FROM pg_rewrite WHERE ev_class = 'ledger'::regclass
  UNION ALL SELECT 'a policy ' || polname FROM pg_policy WHERE polrelid = 'ledger'::regclass
  UNION ALL SELECT 'a child table ' || inhrelid::regclass FROM pg_inherits WHERE inhparent = 'ledger'::regclass
  UNION ALL SELECT 'a function ' || proname FROM pg_proc
    WHERE proname = 'owlclaw_ledger_append' AND pg_function_is_visible(oid) AND prosrc <> $1
  UNION ALL SELECT 'no primary key, or one'
    WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'ledger'::regclass AND contype = 'p'
      AND pg_get_constraintdef(oid) = 'PRIMARY KEY (seq)')
  LIMIT 100`;

function valueOf(row: unknown): unknown {
  return typeof row === "object" && row !== null ? Reflect.get(row, "found") : undefined;
}

export function toHead(row: unknown): LedgerHead {
  if (typeof row !== "object" || row === null) return GENESIS;
  return { seq: Number(Reflect.get(row, "seq")), hash: String(Reflect.get(row, "hash")) };
}
