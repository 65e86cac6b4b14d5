import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "libsql";
import { OwlError } from "../../../errors/owl-error.ts";
import { MIGRATIONS } from "./schema.ts";

export type SqliteConnection = InstanceType<typeof Database>;

/** How long a write waits for another process; a commit takes milliseconds. */
export const BUSY_TIMEOUT_MS = 5000;

/**
 * `write` waits for locks and for the disk. `write-unsynced` waits for neither, so that an event loop can do it: whoever
 * uses it syncs the log and empties it.
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

/** A file that was removed or replaced still takes writes that nobody will ever read. */
export function fileIdentity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

/** Arguments and results are in it: for nobody else to read. */
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
    // Another process may have been here in the meantime.
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
