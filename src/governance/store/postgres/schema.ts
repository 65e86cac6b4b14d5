import { lockSql } from "../../../platform/postgres-database.ts";

const TABLES = `
CREATE TABLE call_clock (is_only BOOLEAN PRIMARY KEY, last BIGINT NOT NULL, shift BIGINT NOT NULL);
INSERT INTO call_clock VALUES (TRUE, 0, 0);
CREATE TABLE call_times (key TEXT COLLATE "C", at BIGINT, n BIGINT NOT NULL, PRIMARY KEY (key, at));
CREATE TABLE call_days (
  key TEXT COLLATE "C", day TEXT COLLATE "C", calls BIGINT NOT NULL, spent BIGINT NOT NULL, reserved BIGINT NOT NULL,
  PRIMARY KEY (key, day)
) WITH (fillfactor = 50);
CREATE TABLE call_places (key TEXT COLLATE "C" PRIMARY KEY, running BIGINT NOT NULL) WITH (fillfactor = 50);
CREATE TABLE call_starts (
  call BIGINT PRIMARY KEY, holds JSON NOT NULL, day TEXT NOT NULL, micros BIGINT NOT NULL, draft TEXT NOT NULL, mac TEXT NOT NULL
);
CREATE TABLE call_servers (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, beat_at BIGINT NOT NULL);
CREATE UNLOGGED TABLE call_epoch (is_only BOOLEAN PRIMARY KEY, token TEXT NOT NULL)`;

/**
 * PostgreSQL empties unlogged tables when it starts again after a crash. A new token shows the servers that admissions
 * which had not reached the disk are lost.
 */
const EPOCH = `
CREATE FUNCTION owlclaw_call_epoch_1() RETURNS TEXT
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  found TEXT;
BEGIN
  SELECT token INTO found FROM call_epoch;
  IF found IS NULL THEN
    INSERT INTO call_epoch VALUES (TRUE, md5(random()::TEXT || clock_timestamp()::TEXT)) ON CONFLICT DO NOTHING;
    SELECT token INTO found FROM call_epoch;
  END IF;
  RETURN found;
END $$`;

/** Imports the counts of an earlier version. Its tables remain, for servers of that version that still run. */
const TAKE_OVER = `
DO $$ BEGIN
  IF to_regclass('limit_spent') IS NOT NULL THEN
    INSERT INTO call_days SELECT key, day, sum(n), 0, 0 FROM limit_days GROUP BY key, day;
    INSERT INTO call_days SELECT key, month || '-01', 0, sum(micros), 0 FROM limit_spent GROUP BY key, month
      ON CONFLICT (key, day) DO UPDATE SET spent = excluded.spent;
  END IF;
END $$`;

/**
 * Takes the lock that serializes admissions, and reads the counts of the keys. When the clock of the database is set
 * back, time continues from its last value: the difference is stored.
 */
const COUNTS = `
CREATE FUNCTION owlclaw_call_counts_1(server BIGINT, keys JSON, today TEXT, this_month TEXT, given_ms BIGINT) RETURNS JSON
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  wall_ms BIGINT;
  steady_ms BIGINT;
  counts JSON;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', TRUE);
  PERFORM ${lockSql("calls")};
  wall_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  SELECT COALESCE(given_ms, greatest(wall_ms + shift, last)) INTO steady_ms FROM call_clock;
  SELECT json_agg(json_build_array(asked.key,
      (SELECT n FROM call_times t WHERE t.key = asked.key ORDER BY at DESC LIMIT 1),
      (SELECT at FROM call_times t WHERE t.key = asked.key ORDER BY at DESC LIMIT 1),
      (SELECT n FROM call_times t WHERE t.key = asked.key AND at <= steady_ms - 60000 ORDER BY at DESC LIMIT 1),
      (SELECT at FROM call_times t WHERE t.key = asked.key AND at > steady_ms - 60000 ORDER BY at LIMIT 1),
      (SELECT running FROM call_places p WHERE p.key = asked.key),
      days.calls, days.spent, days.reserved))
    INTO counts FROM json_array_elements_text(keys) AS asked(key)
    LEFT JOIN LATERAL (SELECT sum(calls) FILTER (WHERE day >= today) AS calls, sum(spent) AS spent, sum(reserved) AS reserved
      FROM call_days d WHERE d.key = asked.key AND day >= this_month) AS days ON TRUE;
  RETURN json_build_object('wall', wall_ms, 'steady', steady_ms, 'counts', COALESCE(counts, '[]'),
    'listed', EXISTS (SELECT FROM call_servers WHERE id = server), 'epoch', owlclaw_call_epoch_1());
END $$`;

/** Writes the counts of a batch, in the transaction that holds the lock. Rows are locked in the order of their keys. */
const ADD = `
CREATE FUNCTION owlclaw_call_add_1(server BIGINT, batch JSON, starts JSON) RETURNS VOID
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO call_places SELECT c->>0, (c->>1)::BIGINT FROM json_array_elements(batch->'days') c ORDER BY 1
    ON CONFLICT (key) DO UPDATE SET running = call_places.running + excluded.running;
  INSERT INTO call_days SELECT c->>0, batch->>'day', (c->>1)::BIGINT, 0, (c->>2)::BIGINT
    FROM json_array_elements(batch->'days') c ORDER BY 1
    ON CONFLICT (key, day) DO UPDATE SET calls = call_days.calls + excluded.calls, reserved = call_days.reserved + excluded.reserved;
  INSERT INTO call_times SELECT c->>0, (c->>1)::BIGINT, (c->>2)::BIGINT FROM json_array_elements(batch->'times') c
    ON CONFLICT (key, at) DO UPDATE SET n = excluded.n;
  INSERT INTO call_starts SELECT * FROM json_populate_recordset(NULL::call_starts, starts);
  DELETE FROM call_times t USING json_array_elements_text(batch->'trims') AS trimmed(key) WHERE t.key = trimmed.key
    AND at < (SELECT max(at) FROM call_times x WHERE x.key = trimmed.key AND at <= (batch->>'steady')::BIGINT - 60000);
  UPDATE call_clock SET last = (batch->>'steady')::BIGINT, shift = (batch->>'steady')::BIGINT - (batch->>'wall')::BIGINT
    WHERE last < (batch->>'steady')::BIGINT AND batch->>'wall' IS NOT NULL;
  UPDATE call_servers SET beat_at = (batch->>'now')::BIGINT WHERE id = server AND beat_at < (batch->>'now')::BIGINT - 1000;
END $$`;

/**
 * Counts calls in flight again when a crash of the database has lost their admissions: in the current minute, and on
 * the day of their admission. Does nothing for a server that another one has treated as dead: its calls are settled.
 */
const RESTORE = `
CREATE FUNCTION owlclaw_call_restore_1(server BIGINT, starts JSON, given_ms BIGINT) RETURNS VOID
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  steady_ms BIGINT;
BEGIN
  PERFORM ${lockSql("calls")};
  IF NOT EXISTS (SELECT FROM call_servers WHERE id = server) THEN
    RETURN;
  END IF;
  SELECT COALESCE(given_ms, greatest(floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + shift, last))
    INTO steady_ms FROM call_clock;
  WITH lost AS (
    INSERT INTO call_starts SELECT * FROM json_populate_recordset(NULL::call_starts, starts) ON CONFLICT DO NOTHING
    RETURNING holds, day, micros
  ),
  held AS (SELECT day, micros, h->>0 AS key, (h->>1)::INTEGER AS paid FROM lost, json_array_elements(holds) h),
  places AS (
    INSERT INTO call_places SELECT key, count(*) FROM held GROUP BY key ORDER BY 1
      ON CONFLICT (key) DO UPDATE SET running = call_places.running + excluded.running
  ),
  days AS (
    INSERT INTO call_days SELECT key, day, count(*), 0, sum(micros * paid) FROM held GROUP BY key, day ORDER BY 1
      ON CONFLICT (key, day) DO UPDATE SET calls = call_days.calls + excluded.calls, reserved = call_days.reserved + excluded.reserved
  ),
  added AS (SELECT key, count(*) AS calls FROM held GROUP BY key),
  firsts AS (
    INSERT INTO call_times SELECT key, -60000, 0 FROM added WHERE NOT EXISTS (SELECT FROM call_times t WHERE t.key = added.key)
  )
  INSERT INTO call_times SELECT key, greatest(steady_ms, at), COALESCE(n, 0) + calls
    FROM added LEFT JOIN LATERAL (SELECT at, n FROM call_times t WHERE t.key = added.key ORDER BY at DESC LIMIT 1) newest ON TRUE
    ON CONFLICT (key, at) DO UPDATE SET n = excluded.n;
END $$`;

/**
 * Releases what calls hold, books their costs and appends their rows after the head that the server knows. Changes
 * nothing and returns NULL when the head is another one, or when a call has already ended.
 */
const SETTLE = `
CREATE FUNCTION owlclaw_call_settle_1(ends JSON, known_seq BIGINT, known_hash TEXT, batch JSON) RETURNS JSON
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  spendings JSON;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RETURN NULL;
  END IF;
  PERFORM ${lockSql("ledger")};
  IF (SELECT count(*) FROM json_array_elements(ends) e JOIN call_starts s ON s.call = (e->>0)::BIGINT) <> json_array_length(ends) THEN
    RETURN NULL;
  END IF;
  IF json_array_length(batch) > 0 AND NOT owlclaw_ledger_append(known_seq, known_hash, batch) THEN
    RETURN NULL;
  END IF;
  PERFORM FROM call_places WHERE key IN
    (SELECT h->>0 FROM json_array_elements(ends) e JOIN call_starts s ON s.call = (e->>0)::BIGINT, json_array_elements(s.holds) h)
    ORDER BY key FOR UPDATE;
  WITH asked AS (SELECT (e->>0)::BIGINT AS call, (e->>1)::BIGINT AS cost FROM json_array_elements(ends) e),
  ended AS (
    DELETE FROM call_starts s USING asked WHERE s.call = asked.call RETURNING s.call, s.holds, s.day, s.micros, asked.cost
  ),
  held AS (SELECT ended.*, h->>0 AS key, (h->>1)::INTEGER AS paid FROM ended, json_array_elements(ended.holds) h),
  freed AS (
    UPDATE call_places p SET running = greatest(0, running - of.n)
    FROM (SELECT key, count(*) AS n FROM held GROUP BY key) of WHERE p.key = of.key
  ),
  booked AS (
    UPDATE call_days d SET spent = spent + of.cost, reserved = greatest(0, reserved - of.micros)
    FROM (SELECT key, day, sum(cost) AS cost, sum(micros) AS micros FROM held WHERE paid = 1 GROUP BY key, day) of
    WHERE d.key = of.key AND d.day = of.day
  )
  SELECT json_agg(json_build_array(call, key, left(day, -3),
      (SELECT sum(spent) FROM call_days d WHERE d.key = held.key AND d.day >= left(held.day, -3))))
    INTO spendings FROM held WHERE paid = 1 AND cost > 0;
  RETURN COALESCE(spendings, '[]');
END $$`;

/** The migrations, in order. A migration that has been released never changes. */
export const CALL_MIGRATIONS: readonly string[] = [TABLES, TAKE_OVER, EPOCH, COUNTS, ADD, RESTORE, SETTLE];
