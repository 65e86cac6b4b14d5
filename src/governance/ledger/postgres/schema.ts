import { lockSql } from "../../../platform/postgres-database.ts";
import { COLUMNS } from "../row.ts";

export const ROW_COLUMNS: string = [...COLUMNS, "hash"].join(", ");

export const HEAD_SQL = "SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1";

const POPULATE_SQL = `INSERT INTO ledger (${ROW_COLUMNS}) SELECT ${ROW_COLUMNS} FROM json_populate_recordset(NULL::ledger`;

/** Steps of the schema, in order; `owlclaw_schema` says how many have run. A step that has shipped stays as it is. */
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
  // Statements inside see what was committed before each of them began, so that the head is younger than the lock; where
  // transactions are stricter by default, they see what was there before the lock.
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
  // A trigger can swallow rows: then none is stored, and the call fails.
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

/** What the database keeps of the function that appends. */
export const APPEND_SOURCE: string = MIGRATIONS.at(-1)?.split("$$")[1] ?? "";

/** Writes and leaves nothing: a database that only reads refuses it. */
export const TOUCH_SQL = "UPDATE ledger_meta SET value = value WHERE name = 'chain_key_id'";

/** All rows of a batch in one parameter. */
export const INSERT_SQL = `${POPULATE_SQL}, $1::json)`;

/** The same behind a head that nobody has moved: in a transaction of its own, and in one round trip. */
export const APPEND_SQL = "SELECT owlclaw_ledger_append($1, $2, $3) AS fits";

export const RECORDS_SQL = `SELECT ${ROW_COLUMNS} FROM ledger WHERE seq > $1 ORDER BY seq LIMIT $2`;
