import Database from "libsql";
import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { OwlError, isOwlError } from "../../../errors/owl-error.ts";
import { COLUMNS } from "../row.ts";

export type SqliteConnection = InstanceType<typeof Database>;

/** How long a write waits for another process; a commit takes milliseconds. */
export const BUSY_TIMEOUT_MS = 5000;

/**
 * `write` waits for locks and for the disk. `write-unsynced` waits for neither, so that an event loop can use it: the
 * user of the connection syncs the log and empties it.
 */
export type ConnectionMode = "read" | "write" | "write-unsynced";

export interface ConnectionOptions {
  readonly path: string;
  readonly mode: ConnectionMode;
}

export function openConnection({ path, mode }: ConnectionOptions): SqliteConnection {
  if (mode !== "read") makeFile(path);
  else if (!existsSync(path)) throw noLedger(path);
  const db = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    if (mode === "read") {
      db.exec("PRAGMA query_only = ON");
      if (schemaVersion(db) === 0) throw noLedger(path);
    } else prepareToWrite(db);
    if (mode === "write-unsynced") leaveWaitingToOthers(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Identifies the file: one that was removed or replaced still accepts writes through an open connection. */
export function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

/** The file contains arguments and results, so only its owner may read it. */
function makeFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
}

function prepareToWrite(db: SqliteConnection): void {
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = FULL");
  if (schemaVersion(db) === MIGRATIONS.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have migrated the file meanwhile.
    const version = schemaVersion(db);
    if (version > MIGRATIONS.length) throw tooNew(version);
    for (const step of MIGRATIONS.slice(version)) db.exec(step);
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}

function leaveWaitingToOthers(db: SqliteConnection): void {
  db.exec("PRAGMA synchronous = NORMAL");
  db.exec("PRAGMA wal_autocheckpoint = 0");
  db.exec("PRAGMA busy_timeout = 0");
}

function schemaVersion(db: SqliteConnection): number {
  const [row] = db.prepare("SELECT user_version FROM pragma_user_version").raw().all();
  return Array.isArray(row) ? Number(row[0]) : 0;
}

function tooNew(version: number): OwlError {
  return new OwlError(
    "store_unavailable",
    `the ledger has the schema ${version}, and this version knows ${MIGRATIONS.length}`,
    {
      hint: "A newer OwlClaw wrote it: use that version, or another data folder.",
      retryable: false,
    },
  );
}

function noLedger(path: string): OwlError {
  return new OwlError("store_unavailable", `there is no ledger at ${path}`, {
    hint: "It is made when a server starts. Name the server's own configuration with --config, or set sandbox.root.",
    retryable: false,
  });
}

/**
 * `PRAGMA user_version` is their number when all of them have run. New migrations go to the end; a released one never
 * changes.
 */
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
  // The tables of src/governance/store, which admits calls. They are in this file so that one transaction settles and
  // records a call.
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

/** Writes to the disk without a lasting change. An update to the same value would not be written. */
export const TOUCH_SQL = "INSERT INTO ledger_meta VALUES ('touch', ''); DELETE FROM ledger_meta WHERE name = 'touch'";

/** A whole row, as bytes: the library ends the process on a text that is not UTF-8, which a flipped bit can cause. */
export const WHOLE_ROW = `CAST(json_array(${ROW_COLUMNS.join(", ")}) AS BLOB)`;

/**
 * The row as `encodeRow` writes it, made by the database: one text for each row is read twice as fast as all its
 * columns.
 */
export const RECORDS_SQL = `SELECT seq, CAST(hash AS BLOB), CAST(json_array(${COLUMNS.join(", ")}) AS BLOB) FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?`;

const REASONS: readonly (readonly [RegExp, string, string])[] = [
  [/SQLITE_FULL|disk is full|ENOSPC/i, "the disk is full", "Free space on the disk of the data folder."],
  [
    /SQLITE_READONLY|SQLITE_PERM|SQLITE_CANTOPEN|readonly|EACCES|EROFS|unable to open/i,
    "it cannot be opened for writing",
    "Give the server's user the right to write to the file and its folder.",
  ],
  [
    /SQLITE_CORRUPT|SQLITE_NOTADB|malformed|not a database/i,
    "the file is damaged",
    "Run `owlclaw mcp-server ledger verify`, then put a backup back or move the file away while the server is stopped.",
  ],
  [/SQLITE_BUSY|SQLITE_LOCKED|is locked/i, "another process holds its lock", "Find the process that keeps it locked."],
];

/** Whether another connection holds the lock that a write needs. Nothing was changed then. */
export function isLocked(thrown: unknown): boolean {
  const error = isOwlError(thrown) ? thrown.cause : thrown;
  return error instanceof Error && "code" in error && error.code === "SQLITE_BUSY";
}

/** Any error of the database as one kind of error that names the cause and the remedy. */
export function storeError(thrown: unknown, path: string): OwlError {
  if (isOwlError(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  const [, reason, hint] = REASONS.find(([pattern]) => pattern.test(`${code} ${message}`)) ?? [];
  return new OwlError("store_unavailable", `the ledger ${path} cannot be used: ${reason ?? message}`, {
    cause: thrown,
    ...(hint === undefined ? {} : { hint }),
  });
}
