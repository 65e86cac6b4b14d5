import { lockSql } from "../../../platform/postgres-database.ts";
import { COLUMNS } from "../row.ts";

export const ROW_COLUMNS: string = [...COLUMNS, "hash"].join(", ");

export const HEAD_SQL = "SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1";

const POPULATE_SQL = `INSERT INTO ledger (${ROW_COLUMNS}) SELECT ${ROW_COLUMNS} FROM json_populate_recordset(NULL::ledger`;

/**
 * The migrations, in order; `owlclaw_schema` says how many have run. A migration that has been released never changes.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE ledger (
    seq BIGINT PRIMARY KEY,
    time BIGINT NOT NULL,
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
    duration_us BIGINT NOT NULL,
    cost_micros BIGINT NOT NULL,
    trace_id TEXT NOT NULL,
    sandbox TEXT,
    flags TEXT NOT NULL,
    count BIGINT NOT NULL,
    hash TEXT NOT NULL
  );
  CREATE INDEX ledger_time ON ledger (time);
  CREATE INDEX ledger_principal ON ledger (principal, seq);
  CREATE TABLE ledger_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)`,
  // Under READ COMMITTED, each statement of the function sees what was committed before it began, so the head is read
  // after the lock is taken. Stricter isolation would show the head from before the lock.
  `CREATE OR REPLACE FUNCTION owlclaw_ledger_append(known_seq BIGINT, known_hash TEXT, batch JSON) RETURNS BOOLEAN
  LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    head RECORD;
  BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
      RETURN FALSE;
    END IF;
    PERFORM ${lockSql("ledger")};
    ${HEAD_SQL.replace(" FROM", " INTO head FROM")};
    IF head.seq IS DISTINCT FROM known_seq OR head.hash IS DISTINCT FROM known_hash THEN
      RETURN FALSE;
    END IF;
    ${POPULATE_SQL}, batch);
    RETURN TRUE;
  END $$`,
  // A trigger can discard rows: then none is stored, and the call fails.
  `CREATE OR REPLACE FUNCTION owlclaw_ledger_append(known_seq BIGINT, known_hash TEXT, batch JSON) RETURNS BOOLEAN
  LANGUAGE plpgsql VOLATILE AS $$
  DECLARE
    head RECORD;
    stored INTEGER;
  BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
      RETURN FALSE;
    END IF;
    PERFORM ${lockSql("ledger")};
    ${HEAD_SQL.replace(" FROM", " INTO head FROM")};
    IF head.seq IS DISTINCT FROM known_seq OR head.hash IS DISTINCT FROM known_hash THEN
      RETURN FALSE;
    END IF;
    ${POPULATE_SQL}, batch);
    GET DIAGNOSTICS stored = ROW_COUNT;
    IF stored <> json_array_length(batch) THEN
      RAISE EXCEPTION 'the shared ledger did not store every row';
    END IF;
    RETURN TRUE;
  END $$`,
];

/** The source of the append function, as the database keeps it. */
export const APPEND_SOURCE: string = MIGRATIONS.at(-1)?.split("$$")[1] ?? "";

/** Writes without a change: a read-only database rejects it. */
export const TOUCH_SQL = "UPDATE ledger_meta SET value = value WHERE name = 'chain_key_id'";

/** Inserts all rows of a batch from one parameter. */
export const INSERT_SQL = `${POPULATE_SQL}, $1::json)`;

/** Appends when the head is the expected one, in a separate transaction and one round trip. */
export const APPEND_SQL = "SELECT owlclaw_ledger_append($1, $2, $3) AS fits";

export const RECORDS_SQL = `SELECT ${ROW_COLUMNS} FROM ledger WHERE seq > $1 ORDER BY seq LIMIT $2`;
