import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import Database from "libsql";

/** Another process holds the lock for well under a millisecond; one that hangs must not hang us for long. */
const BUSY_TIMEOUT_MS = 1000;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS calls (key TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (key, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS days (key TEXT NOT NULL, day TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (key, day)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (key TEXT NOT NULL, month TEXT NOT NULL, micros INTEGER NOT NULL, PRIMARY KEY (key, month)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS held (process INTEGER NOT NULL, key TEXT NOT NULL, month TEXT NOT NULL, n INTEGER NOT NULL, micros INTEGER NOT NULL, PRIMARY KEY (process, key, month)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS held_by_key ON held (key);
CREATE TABLE IF NOT EXISTS processes (id INTEGER PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL, started TEXT NOT NULL, namespace TEXT NOT NULL, beat INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`;

export type LimitsDatabase = InstanceType<typeof Database>;

/** WAL without a sync for each commit: a killed process loses nothing, a power cut at most its last moments. */
export function openLimitsDatabase(path: string): LimitsDatabase {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
  const db = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = NORMAL");
  db.exec(SCHEMA);
  return db;
}

/** The first column of the first row, as a number. */
export function firstNumber(row: unknown): number | undefined {
  return Array.isArray(row) && row[0] !== null ? Number(row[0]) : undefined;
}
