/**
 * What servers share beside the ledger and the counts. Sessions and their events are in unlogged tables: after a crash of the
 * database they are empty, and each server writes its own sessions again. Used states are logged: one that is forgotten could be
 * used twice.
 */
export const CLUSTER_MIGRATIONS: readonly string[] = [
  "CREATE TABLE owlclaw_servers (id TEXT PRIMARY KEY, url TEXT NOT NULL, until TIMESTAMPTZ NOT NULL)",
  `CREATE UNLOGGED TABLE owlclaw_sessions (
    key TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    taken INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL
  );
  CREATE UNLOGGED TABLE owlclaw_session_streams (
    session TEXT NOT NULL REFERENCES owlclaw_sessions ON DELETE CASCADE,
    stream TEXT NOT NULL,
    ended BOOLEAN NOT NULL DEFAULT FALSE,
    about TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (session, stream)
  );
  CREATE UNLOGGED TABLE owlclaw_session_events (
    session TEXT NOT NULL,
    stream TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session, stream, sequence),
    FOREIGN KEY (session, stream) REFERENCES owlclaw_session_streams ON DELETE CASCADE
  );
  CREATE INDEX ON owlclaw_sessions (until);
  CREATE INDEX ON owlclaw_session_streams (until);
  CREATE TABLE owlclaw_used_states (id TEXT PRIMARY KEY, until TIMESTAMPTZ NOT NULL);

  -- One row. It is lost together with the sessions: a new value tells the servers to write theirs again.
  CREATE UNLOGGED TABLE owlclaw_session_epoch (one BOOLEAN PRIMARY KEY CHECK (one), epoch TEXT NOT NULL, since TIMESTAMPTZ NOT NULL);
  INSERT INTO owlclaw_session_epoch VALUES (TRUE, 'first', '-infinity');

  CREATE FUNCTION owlclaw_after(milliseconds NUMERIC) RETURNS TIMESTAMPTZ LANGUAGE sql AS
    $$ SELECT clock_timestamp() + milliseconds * INTERVAL '1 millisecond' $$;

  -- The heartbeat of a server. Returns the epoch of the sessions.
  CREATE FUNCTION owlclaw_put_server(me TEXT, its_url TEXT, lease NUMERIC) RETURNS TEXT LANGUAGE sql AS $$
    INSERT INTO owlclaw_servers VALUES (me, its_url, owlclaw_after(lease))
      ON CONFLICT (id) DO UPDATE SET url = EXCLUDED.url, until = EXCLUDED.until;
    INSERT INTO owlclaw_session_epoch VALUES (TRUE, md5(random()::TEXT || clock_timestamp()::TEXT), clock_timestamp()) ON CONFLICT DO NOTHING;
    SELECT epoch FROM owlclaw_session_epoch;
  $$;

  -- One change of one session, by the server that owns it. 'taken': another server owns it. 'missing': nothing is stored of it.
  CREATE FUNCTION owlclaw_write_session(me TEXT, op JSONB) RETURNS TEXT LANGUAGE plpgsql AS $$
  DECLARE
    its_key CONSTANT TEXT := op->>'key';
    its_stream CONSTANT TEXT := op->>'stream';
    its_until CONSTANT TIMESTAMPTZ := owlclaw_after((op->>'lifeMs')::NUMERIC);
    its_owner TEXT;
  BEGIN
    DELETE FROM owlclaw_sessions WHERE key = its_key AND until <= clock_timestamp();
    SELECT owner INTO its_owner FROM owlclaw_sessions WHERE key = its_key FOR UPDATE;
    IF its_owner <> me THEN RETURN 'taken'; END IF;
    IF its_owner IS NULL AND op->>'op' NOT IN ('state', 'end') THEN RETURN 'missing'; END IF;
    CASE op->>'op'
    WHEN 'state' THEN
      INSERT INTO owlclaw_sessions (key, owner, state, until) VALUES (its_key, me, op->>'state', its_until)
        ON CONFLICT (key) DO UPDATE SET state = EXCLUDED.state, until = EXCLUDED.until
        WHERE owlclaw_sessions.owner = me;
      IF NOT FOUND THEN RETURN 'taken'; END IF;
    WHEN 'event' THEN
      INSERT INTO owlclaw_session_streams (session, stream, about, until)
        SELECT its_key, its_stream, op->>'about', its_until WHERE op ? 'about'
        ON CONFLICT (session, stream) DO NOTHING;
      UPDATE owlclaw_session_streams SET until = its_until WHERE session = its_key AND stream = its_stream;
      IF FOUND THEN
        INSERT INTO owlclaw_session_events
          VALUES (its_key, its_stream, (op->>'sequence')::BIGINT, op->>'event') ON CONFLICT DO NOTHING;
        DELETE FROM owlclaw_session_events WHERE session = its_key AND stream = its_stream
          AND sequence <= (op->>'sequence')::BIGINT - (op->>'keep')::BIGINT;
      END IF;
    WHEN 'close' THEN
      INSERT INTO owlclaw_session_streams VALUES (its_key, its_stream, TRUE, op->>'about', its_until)
        ON CONFLICT (session, stream) DO UPDATE SET ended = TRUE, about = EXCLUDED.about, until = EXCLUDED.until;
    WHEN 'forget' THEN
      DELETE FROM owlclaw_session_streams WHERE session = its_key AND stream = its_stream;
    WHEN 'keep' THEN
      UPDATE owlclaw_sessions SET until = its_until WHERE key = its_key;
      UPDATE owlclaw_session_streams SET until = its_until WHERE session = its_key AND NOT ended;
    WHEN 'end' THEN
      DELETE FROM owlclaw_sessions WHERE key = its_key;
    END CASE;
    RETURN 'ok';
  END $$;

  CREATE FUNCTION owlclaw_write_sessions(me TEXT, ops JSONB) RETURNS TEXT[] LANGUAGE plpgsql AS $$
  DECLARE
    answers TEXT[] := '{}';
    op JSONB;
  BEGIN
    FOR op IN SELECT value FROM jsonb_array_elements(ops) LOOP
      answers := answers || owlclaw_write_session(me, op);
    END LOOP;
    RETURN answers;
  END $$;

  -- A session whose owner is gone, with all that is stored of it; null when its owner lives or is another by now.
  CREATE FUNCTION owlclaw_take_session(its_key TEXT, gone TEXT, me TEXT) RETURNS JSONB LANGUAGE plpgsql AS $$
  DECLARE
    session owlclaw_sessions;
  BEGIN
    UPDATE owlclaw_sessions SET owner = me, taken = taken + 1
      WHERE key = its_key AND owner = gone AND until > clock_timestamp()
      AND NOT EXISTS (SELECT FROM owlclaw_servers WHERE id = gone AND until > clock_timestamp())
      RETURNING * INTO session;
    IF NOT FOUND THEN RETURN NULL; END IF;
    RETURN jsonb_build_object('state', session.state, 'taken', session.taken, 'streams', (
      SELECT coalesce(jsonb_agg(jsonb_build_object('id', stream, 'ended', ended, 'about', about, 'events', (
        SELECT coalesce(jsonb_agg(jsonb_build_array(e.sequence, e.data) ORDER BY e.sequence), '[]')
          FROM owlclaw_session_events e WHERE e.session = s.session AND e.stream = s.stream))), '[]')
        FROM owlclaw_session_streams s WHERE s.session = its_key AND until > clock_timestamp()));
  END $$;

  CREATE FUNCTION owlclaw_purge_sessions() RETURNS VOID LANGUAGE sql AS $$
    DELETE FROM owlclaw_sessions WHERE until <= clock_timestamp();
    DELETE FROM owlclaw_session_streams WHERE until <= clock_timestamp();
    DELETE FROM owlclaw_used_states WHERE until <= clock_timestamp();
    DELETE FROM owlclaw_servers WHERE until <= clock_timestamp() - INTERVAL '1 day';
  $$;`,
];
