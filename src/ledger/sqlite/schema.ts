import { COLUMNS } from "../row.ts";

/** What `PRAGMA user_version` says when all of them have run. New steps go to the end; a step that has shipped stays as it is. */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    principal TEXT NOT NULL,
    label TEXT,
    transport TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    called_as TEXT NOT NULL,
    args TEXT NOT NULL,
    result TEXT NOT NULL,
    outcome TEXT NOT NULL,
    error_kind TEXT,
    decision TEXT NOT NULL,
    rule TEXT NOT NULL,
    policy_revision TEXT NOT NULL,
    duration_us INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    trace_id TEXT NOT NULL,
    sandbox TEXT,
    flags TEXT NOT NULL,
    count INTEGER NOT NULL,
    hash TEXT NOT NULL
  ) STRICT;
  CREATE INDEX ledger_facts ON ledger
    (time, principal, name, kind, outcome, decision, cost_micros, duration_us, count);
  CREATE TABLE ledger_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;`,
];

export const ROW_COLUMNS: string = [...COLUMNS, "hash"].join(", ");

export const INSERT_SQL = `INSERT INTO ledger (${ROW_COLUMNS}) VALUES (${[...COLUMNS, "hash"].map(() => "?").join(", ")})`;

/** The row as `encodeRow` writes it, made by the database: one text for each row is twice as fast to read as all its columns. */
export const RECORDS_SQL = `SELECT seq, hash, json_array(${COLUMNS.join(", ")}) FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?`;
