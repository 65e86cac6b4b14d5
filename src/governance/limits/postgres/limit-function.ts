import { lockSql, sharedLockSql } from "../../../postgres/database.ts";

const TABLES = `
CREATE TABLE limit_clock (space TEXT PRIMARY KEY, last BIGINT NOT NULL, shift BIGINT NOT NULL);
CREATE TABLE limit_holders (
  space TEXT, name TEXT, until BIGINT NOT NULL, seq BIGINT NOT NULL, is_fenced BOOLEAN NOT NULL,
  PRIMARY KEY (space, name)
);
CREATE TABLE limit_calls (space TEXT, key TEXT, at BIGINT, n BIGINT NOT NULL, PRIMARY KEY (space, key, at));
CREATE TABLE limit_minutes (space TEXT, key TEXT, n BIGINT NOT NULL, PRIMARY KEY (space, key));
CREATE TABLE limit_days (space TEXT, key TEXT, day TEXT, n BIGINT NOT NULL, PRIMARY KEY (space, key, day));
CREATE TABLE limit_spent (space TEXT, key TEXT, month TEXT, micros BIGINT NOT NULL, PRIMARY KEY (space, key, month));
CREATE TABLE limit_held (
  space TEXT, key TEXT, month TEXT, holder TEXT, n BIGINT NOT NULL,
  PRIMARY KEY (space, key, month, holder)
)`;

/** What is used under one key: calls in the last minute, the oldest of them, calls of the day, calls that run, money. */
const LOOK = `
CREATE FUNCTION owlclaw_limit_look_1(s TEXT, c JSONB, today TEXT, this_month TEXT, steady BIGINT) RETURNS BIGINT[]
LANGUAGE plpgsql AS $$
DECLARE
  k TEXT := c->>0;
  gone BIGINT;
  in_window BIGINT;
  first_at BIGINT;
  calls_today BIGINT;
  running BIGINT := 0;
  money BIGINT := 0;
BEGIN
  WITH old AS (DELETE FROM limit_calls WHERE space = s AND key = k AND at <= steady - 60000 RETURNING n)
    SELECT COALESCE(sum(n), 0) INTO gone FROM old;
  IF gone > 0 THEN UPDATE limit_minutes SET n = n - gone WHERE space = s AND key = k; END IF;
  SELECT n INTO in_window FROM limit_minutes WHERE space = s AND key = k;
  SELECT at INTO first_at FROM limit_calls WHERE space = s AND key = k ORDER BY at LIMIT 1;
  SELECT n INTO calls_today FROM limit_days WHERE space = s AND key = k AND day = today;
  IF (c->>3)::BIGINT >= 0 THEN running := owlclaw_limit_held_1(s, k, '', steady); END IF;
  IF (c->>4)::BIGINT >= 0 THEN
    SELECT micros INTO money FROM limit_spent WHERE space = s AND key = k AND month = this_month;
    money := COALESCE(money, 0) + owlclaw_limit_held_1(s, k, this_month, steady);
  END IF;
  RETURN ARRAY[COALESCE(in_window, 0), COALESCE(first_at, -1), COALESCE(calls_today, 0), running, money];
END $$`;

/** What those who live hold under a key: calls that run, or money of a month. */
const HELD = `
CREATE FUNCTION owlclaw_limit_held_1(s TEXT, k TEXT, of_month TEXT, steady BIGINT) RETURNS BIGINT
LANGUAGE sql VOLATILE AS $$
  SELECT COALESCE(sum(held.n), 0)::BIGINT FROM limit_held held JOIN limit_holders ON limit_holders.space = s AND name = holder
  WHERE held.space = s AND key = k AND month = of_month AND until > steady
$$`;

/** The number of the cap that one more call would pass, from 0, or -1; the order is minute, day, at a time, money. */
const OBJECTION = `
CREATE FUNCTION owlclaw_limit_objection_1(c JSONB, seen BIGINT[], reserve BIGINT) RETURNS INTEGER
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN (c->>1)::BIGINT >= 0 AND seen[1] + 1 > (c->>1)::BIGINT THEN 0
    WHEN (c->>2)::BIGINT >= 0 AND seen[3] + 1 > (c->>2)::BIGINT THEN 1
    WHEN (c->>3)::BIGINT >= 0 AND seen[4] + 1 > (c->>3)::BIGINT THEN 2
    WHEN (c->>4)::BIGINT >= 0 AND reserve > 0 AND seen[5] + reserve > (c->>4)::BIGINT THEN 3
    ELSE -1 END
$$`;

const ADMIT = `
CREATE FUNCTION owlclaw_limit_admit_1(input JSONB, op JSONB, steady BIGINT) RETURNS BIGINT[]
LANGUAGE plpgsql AS $$
DECLARE
  s TEXT := input->>'prefix';
  reserve BIGINT := (op->>'reserve')::BIGINT;
  c JSONB;
  seen BIGINT[];
  all_seen BIGINT[] := '{}';
  place BIGINT := 0;
  refused_at BIGINT := -1;
  which INTEGER := -1;
  wait BIGINT := 0;
  leaves BIGINT;
BEGIN
  FOR c IN SELECT * FROM jsonb_array_elements(op->'counters') LOOP
    seen := owlclaw_limit_look_1(s, c, input->>'day', input->>'month', steady);
    all_seen := all_seen || seen;
    IF which < 0 THEN
      which := owlclaw_limit_objection_1(c, seen, reserve);
      IF which >= 0 THEN refused_at := place; END IF;
      IF which = 0 THEN
        SELECT at INTO leaves FROM (
          SELECT at, sum(n) OVER (ORDER BY at) AS so_far FROM limit_calls WHERE space = s AND key = c->>0
        ) AS calls WHERE so_far >= seen[1] + 1 - (c->>1)::BIGINT ORDER BY at LIMIT 1;
        wait := COALESCE(leaves + 60000 - steady, 60000);
      END IF;
    END IF;
    place := place + 1;
  END LOOP;
  IF which >= 0 THEN RETURN ARRAY[0, refused_at, which, wait] || all_seen; END IF;
  place := 0;
  FOR c IN SELECT * FROM jsonb_array_elements(op->'counters') LOOP
    INSERT INTO limit_calls VALUES (s, c->>0, steady, 1)
      ON CONFLICT (space, key, at) DO UPDATE SET n = limit_calls.n + 1;
    INSERT INTO limit_minutes VALUES (s, c->>0, 1) ON CONFLICT (space, key) DO UPDATE SET n = limit_minutes.n + 1;
    INSERT INTO limit_days VALUES (s, c->>0, input->>'day', 1)
      ON CONFLICT (space, key, day) DO UPDATE SET n = limit_days.n + 1;
    IF (c->>3)::BIGINT >= 0 THEN
      INSERT INTO limit_held VALUES (s, c->>0, '', input->>'holder', 1)
        ON CONFLICT (space, key, month, holder) DO UPDATE SET n = limit_held.n + 1;
    END IF;
    IF (c->>4)::BIGINT >= 0 AND reserve > 0 THEN
      INSERT INTO limit_held VALUES (s, c->>0, input->>'month', input->>'holder', reserve)
        ON CONFLICT (space, key, month, holder) DO UPDATE SET n = limit_held.n + reserve;
    END IF;
    all_seen[place + 1] := all_seen[place + 1] + 1;
    IF all_seen[place + 2] < 0 THEN all_seen[place + 2] := steady; END IF;
    all_seen[place + 3] := all_seen[place + 3] + 1;
    all_seen[place + 4] := all_seen[place + 4] + 1;
    all_seen[place + 5] := all_seen[place + 5] + reserve;
    place := place + 5;
  END LOOP;
  RETURN ARRAY[1, 0, 0, 0]::BIGINT[] || all_seen;
END $$`;

const GIVE = `
CREATE FUNCTION owlclaw_limit_give_1(s TEXT, k TEXT, of_month TEXT, by TEXT, amount BIGINT) RETURNS VOID
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM limit_held WHERE space = s AND key = k AND month = of_month AND holder = by AND n <= amount;
  IF FOUND THEN RETURN; END IF;
  UPDATE limit_held SET n = n - amount WHERE space = s AND key = k AND month = of_month AND holder = by;
END $$`;

const SETTLE = `
CREATE FUNCTION owlclaw_limit_settle_1(input JSONB, op JSONB) RETURNS BIGINT[]
LANGUAGE plpgsql AS $$
DECLARE
  s TEXT := input->>'prefix';
  cost BIGINT := (op->>'cost')::BIGINT;
  reserve BIGINT := (op->>'reserve')::BIGINT;
  c JSONB;
  after_it BIGINT;
  answer BIGINT[] := '{}';
BEGIN
  PERFORM FROM jsonb_array_elements(op->'tried') AS tried JOIN limit_holders ON space = s AND name = tried->>0
    WHERE seq >= (tried->>1)::BIGINT;
  IF FOUND THEN RETURN answer; END IF;
  FOR c IN SELECT * FROM jsonb_array_elements(op->'counters') LOOP
    IF (c->>3)::BIGINT >= 0 THEN PERFORM owlclaw_limit_give_1(s, c->>0, '', op->>'holder', 1); END IF;
    CONTINUE WHEN (c->>4)::BIGINT < 0;
    IF reserve > 0 THEN PERFORM owlclaw_limit_give_1(s, c->>0, op->>'month', op->>'holder', reserve); END IF;
    after_it := -1;
    IF cost > 0 THEN
      INSERT INTO limit_spent VALUES (s, c->>0, op->>'month', cost)
        ON CONFLICT (space, key, month) DO UPDATE SET micros = limit_spent.micros + cost RETURNING micros INTO after_it;
    END IF;
    answer := answer || CASE WHEN op->>'month' = input->>'month' THEN after_it ELSE -1 END;
  END LOOP;
  RETURN answer;
END $$`;

const RUN = `
CREATE FUNCTION owlclaw_limits_1(input JSONB) RETURNS JSONB
LANGUAGE plpgsql AS $$
DECLARE
  s TEXT := input->>'prefix';
  me TEXT := input->>'holder';
  wall BIGINT;
  steady BIGINT;
  mine RECORD;
  op JSONB;
  answer BIGINT[];
  answers JSONB := '[]';
  c JSONB;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'limits need the isolation level read committed';
  END IF;
  PERFORM ${lockSql("limits")};
  IF input ? 'clock' THEN
    wall := (input->'clock'->>0)::BIGINT;
    steady := (input->'clock'->>1)::BIGINT;
  ELSE
    wall := floor(extract(epoch FROM clock_timestamp()) * 1000);
    -- A clock that is set back goes on from where it was.
    INSERT INTO limit_clock VALUES (s, wall, 0)
      ON CONFLICT (space) DO UPDATE SET last = GREATEST(wall + limit_clock.shift, limit_clock.last),
        shift = GREATEST(wall + limit_clock.shift, limit_clock.last) - wall
      RETURNING last INTO steady;
  END IF;
  IF wall < (input->>'from')::BIGINT OR wall >= (input->>'till')::BIGINT THEN RETURN jsonb_build_array('day', wall); END IF;
  SELECT until, is_fenced INTO mine FROM limit_holders WHERE space = s AND name = me;
  IF mine.is_fenced OR NOT ((input->>'is_new')::BOOLEAN OR COALESCE(mine.until, 0) > steady) THEN
    RETURN jsonb_build_array('holder', wall);
  END IF;
  INSERT INTO limit_holders VALUES (s, me, steady + (input->>'lease')::BIGINT, (input->>'seq')::BIGINT, FALSE)
    ON CONFLICT (space, name) DO UPDATE SET until = EXCLUDED.until, seq = EXCLUDED.seq;
  UPDATE limit_holders SET until = steady + (input->>'lease')::BIGINT
    WHERE space = s AND name IN (SELECT jsonb_array_elements_text(input->'also')) AND until > steady;
  UPDATE limit_holders SET until = 0 WHERE space = s AND name IN (SELECT jsonb_array_elements_text(input->'drop'));
  FOR op IN SELECT * FROM jsonb_array_elements(input->'ops') LOOP
    CASE op->>'op'
      WHEN 'admit' THEN answer := owlclaw_limit_admit_1(input, op, steady);
      WHEN 'settle' THEN answer := owlclaw_limit_settle_1(input, op);
      ELSE
        answer := '{}';
        FOR c IN SELECT * FROM jsonb_array_elements(op->'counters') LOOP
          answer := answer || owlclaw_limit_look_1(s, c, input->>'day', input->>'month', steady);
        END LOOP;
    END CASE;
    answers := answers || jsonb_build_array(to_jsonb(answer));
  END LOOP;
  INSERT INTO limit_holders SELECT s, name, 0, 0, TRUE FROM jsonb_array_elements_text(input->'fence') AS name
    ON CONFLICT (space, name) DO UPDATE SET is_fenced = TRUE;
  RETURN jsonb_build_array('ok', wall, steady, answers);
END $$`;

/**
 * Where Redis counts and this database remembers. An epoch is a memory of Redis, members are the servers that count in
 * it. A batch that comes twice is on file once, and says both times in which epoch.
 */
const PAYMENTS = `
CREATE TABLE limit_epochs (space TEXT PRIMARY KEY, epoch TEXT NOT NULL, began_at TIMESTAMPTZ NOT NULL);
CREATE TABLE limit_members (space TEXT, name TEXT, epoch TEXT NOT NULL, PRIMARY KEY (space, name));
CREATE TABLE limit_payers (
  space TEXT, name TEXT, seq BIGINT NOT NULL, epoch TEXT NOT NULL, paid_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (space, name)
);
CREATE FUNCTION owlclaw_pay_1(s TEXT, payer TEXT, batch_seq BIGINT, spends JSONB) RETURNS TEXT
LANGUAGE plpgsql AS $$
DECLARE
  mine RECORD;
  current_epoch TEXT;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'limits need the isolation level read committed';
  END IF;
  PERFORM ${sharedLockSql("payments")};
  SELECT seq, epoch INTO mine FROM limit_payers WHERE space = s AND name = payer;
  IF mine.seq >= batch_seq THEN RETURN mine.epoch; END IF;
  SELECT epoch INTO STRICT current_epoch FROM limit_epochs WHERE space = s;
  INSERT INTO limit_payers VALUES (s, payer, batch_seq, current_epoch, now())
    ON CONFLICT (space, name) DO UPDATE SET seq = EXCLUDED.seq, epoch = EXCLUDED.epoch, paid_at = EXCLUDED.paid_at;
  INSERT INTO limit_spent SELECT s, key, month, micros
    FROM jsonb_to_recordset(spends) AS spend (key TEXT, month TEXT, micros BIGINT)
    ON CONFLICT (space, key, month) DO UPDATE SET micros = limit_spent.micros + EXCLUDED.micros;
  RETURN current_epoch;
END $$`;

/**
 * Everything that one server asks in one turn, as one function: it takes a lock, so that servers come one after another,
 * and is one transaction, by the clock of PostgreSQL. It reads and answers what the script for Redis does.
 *
 * A step that has shipped stays as it is: functions carry a number, so that an older server goes on beside a newer one.
 */
export const LIMIT_MIGRATIONS: readonly string[] = [
  [TABLES, HELD, LOOK, OBJECTION, ADMIT, GIVE, SETTLE, RUN].join(";\n"),
  PAYMENTS,
];

export const RUN_SQL = "SELECT owlclaw_limits_1($1::jsonb) AS reply";

/** What no limit looks back at any more. Holders are remembered for a day, for batches that come late. */
export const TIDY_SQL = `
WITH clock AS (SELECT last FROM limit_clock WHERE space = $1),
  holders AS (DELETE FROM limit_holders WHERE space = $1 AND until < (SELECT last - 86400000 FROM clock) RETURNING name),
  held AS (
    DELETE FROM limit_held WHERE space = $1 AND NOT EXISTS (
      SELECT FROM limit_holders WHERE space = $1 AND name = holder AND until > (SELECT last FROM clock)
    ) RETURNING key
  ),
  calls AS (DELETE FROM limit_calls WHERE space = $1 AND at <= (SELECT last - 3600000 FROM clock) RETURNING key, n),
  days AS (DELETE FROM limit_days WHERE space = $1 AND day < to_char(now() - INTERVAL '40 days', 'YYYY-MM-DD')),
  spent AS (DELETE FROM limit_spent WHERE space = $1 AND month < to_char(now() - INTERVAL '400 days', 'YYYY-MM'))
UPDATE limit_minutes SET n = limit_minutes.n - gone.n
FROM (SELECT key, sum(n) AS n FROM calls GROUP BY key) AS gone
WHERE limit_minutes.space = $1 AND limit_minutes.key = gone.key`;
