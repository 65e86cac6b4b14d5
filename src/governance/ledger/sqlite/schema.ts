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
  // What calls are admitted by: src/governance/store. In this file, so that one transaction settles and records a call.
  `CREATE TABLE call_times (key TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (key, at)) STRICT, WITHOUT ROWID;
  CREATE TABLE call_days (key TEXT NOT NULL, day TEXT NOT NULL, calls INTEGER NOT NULL, spent INTEGER NOT NULL,
    reserved INTEGER NOT NULL, PRIMARY KEY (key, day)) STRICT, WITHOUT ROWID;
  CREATE TABLE call_places (key TEXT PRIMARY KEY, running INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE call_starts (call INTEGER PRIMARY KEY, holds TEXT NOT NULL, day TEXT NOT NULL, micros INTEGER NOT NULL,
    draft TEXT NOT NULL, mac TEXT NOT NULL) STRICT;
  CREATE TABLE call_servers (id INTEGER PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL, started TEXT NOT NULL,
    namespace TEXT NOT NULL, beat INTEGER NOT NULL) STRICT;`,
];

export const ROW_COLUMNS: readonly string[] = [...COLUMNS, "hash"];

export const INSERT_SQL = `INSERT INTO ledger (${ROW_COLUMNS.join(", ")}) VALUES (${ROW_COLUMNS.map(() => "?").join(", ")})`;

/** Goes to the disk and leaves nothing. A value that is put in its own place would not be written. */
export const TOUCH_SQL = "INSERT INTO ledger_meta VALUES ('touch', ''); DELETE FROM ledger_meta WHERE name = 'touch'";

/** A whole row, as bytes: the library ends the process on a text that is no UTF-8, which is what a flipped bit may make of it. */
export const WHOLE_ROW = `CAST(json_array(${ROW_COLUMNS.join(", ")}) AS BLOB)`;

/** The row as `encodeRow` writes it, made by the database: one text for each row is twice as fast to read as all its columns. */
export const RECORDS_SQL = `SELECT seq, CAST(hash AS BLOB), CAST(json_array(${COLUMNS.join(", ")}) AS BLOB) FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?`;
