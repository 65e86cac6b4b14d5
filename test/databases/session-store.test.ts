import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ClusterDatabase } from "../../src/cluster/cluster-database.ts";
import { newOwnedId } from "../../src/cluster/server-registry.ts";
import type { SessionLog, SessionSource } from "../../src/cluster/session-log.ts";
import { type StoredStream, storedNameOf } from "../../src/cluster/session-state.ts";
import { SessionStore } from "../../src/cluster/session-store.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { POSTGRES_MISSING, type PostgresService, startPostgres } from "../services/postgres.ts";
import { until } from "../integration/harness.ts";

const FIRST = "AAAAAAAAAAAA";
const SECOND = "BBBBBBBBBBBB";
const LEASE_MS = 600_000;
const STATE = { ownerId: "ada", initialize: { protocolVersion: "2025-11-25" }, watched: ["fixture://counter"] };

describe.skipIf(POSTGRES_MISSING !== undefined)(
  `sessions kept in PostgreSQL${POSTGRES_MISSING === undefined ? "" : `: ${POSTGRES_MISSING}`}`,
  () => {
    let service: PostgresService;
    let database: ClusterDatabase;
    let first: SessionStore;
    let second: SessionStore;

    beforeAll(async () => {
      service = await startPostgres();
      database = await ClusterDatabase.open(service.url);
      const common = {
        database,
        clusterKey: "k".repeat(32),
        logger: SILENT_LOGGER,
        lifeMs: 600_000,
        endedLifeMs: 300_000,
      };
      first = new SessionStore({ ...common, serverId: FIRST });
      second = new SessionStore({ ...common, serverId: SECOND });
    });
    afterAll(async () => {
      await Promise.all([first.close(), second.close()]);
      await database.close();
      await service.stop();
    });

    const dump = (): string =>
      ["owlclaw_sessions", "owlclaw_session_streams", "owlclaw_session_events"]
        .map((table) => service.sql(`SELECT * FROM ${table} ORDER BY 1, 2`))
        .join("\n");

    async function begin(streams: readonly StoredStream[] = []): Promise<{ id: string; log: SessionLog }> {
      const id = newOwnedId(FIRST);
      const source: SessionSource = { state: () => STATE, streams: () => streams };
      const log = first.log(id, source);
      await log.begin();
      return { id, log };
    }

    function tell(log: SessionLog, sequence: number, keep = 1000): void {
      const about = sequence === 1 ? { about: { requestIds: [7] } } : {};
      log.event("stream", { event: { sequence, data: `event ${sequence}` }, keep, ...about });
    }

    /** What was queued before has been written. */
    async function written(log: SessionLog): Promise<void> {
      await log.begin();
      await first.close();
    }

    test("are handed over whole, once, and never while their server lives", async () => {
      const { id, log } = await begin();
      for (let sequence = 1; sequence <= 3; sequence++) tell(log, sequence);
      await written(log);
      await database.putServer(FIRST, "http://first", 600_000);
      expect(await second.locate(id, FIRST, LEASE_MS)).toEqual({ owner: FIRST, url: "http://first", isAwaited: false });
      expect(await second.take(id, FIRST)).toBeUndefined();
      await database.removeServer(FIRST);
      expect(await second.read(id)).toEqual(STATE);
      expect(await second.take(id, FIRST)).toEqual({
        state: STATE,
        times: 1,
        streams: [
          {
            id: "stream",
            isEnded: false,
            requestIds: [7],
            events: [1, 2, 3].map((sequence) => ({ sequence, data: `event ${sequence}` })),
          },
        ],
      });
      expect(await second.take(id, FIRST)).toBeUndefined();
      expect(await second.locate(id, FIRST, LEASE_MS)).toMatchObject({ owner: SECOND, isAwaited: false });
    });

    test("are not written by a server that has lost them, which then knows", async () => {
      const { id, log } = await begin();
      tell(log, 1);
      await written(log);
      await second.take(id, FIRST);
      const before = dump();
      const late = first.log(id, { state: () => ({ ...STATE, ownerId: "mallory" }), streams: () => [] });
      tell(late, 2);
      await until(
        () => late.isTaken,
        (isTaken) => isTaken,
      );
      late.end();
      expect(dump()).toBe(before);
    });

    test("have as many events as are kept, each once, and an end", async () => {
      const { id, log } = await begin();
      for (let sequence = 1; sequence <= 50; sequence++) tell(log, sequence, Math.min(sequence, 10));
      tell(log, 50, 10);
      tell(log, 49, 10);
      log.streamEnded("stream", { requestIds: [7] });
      await written(log);
      const taken = await second.take(id, FIRST);
      expect(taken?.streams[0]?.isEnded).toBe(true);
      expect(taken?.streams[0]?.events.map(({ sequence }) => sequence)).toEqual(
        Array.from({ length: 10 }, (_, index) => 41 + index),
      );
    });

    test("that somebody has changed in the database, or put in another's place, are nothing", async () => {
      const [one, other] = [await begin(), await begin()];
      for (const { log } of [one, other]) tell(log, 1);
      await written(one.log);
      service.sql(`UPDATE owlclaw_session_events SET data = (SELECT data FROM owlclaw_session_events
        WHERE session = '${storedNameOf(one.id)}') WHERE session = '${storedNameOf(other.id)}'`);
      expect(await second.take(other.id, FIRST)).toBeUndefined();
      expect(await second.take(one.id, FIRST)).toMatchObject({ streams: [{ events: [{ data: "event 1" }] }] });
    });

    test("are written whole again after a crash of the database, which empties their tables", async () => {
      const events = [1, 2].map((sequence) => ({ sequence, data: `event ${sequence}` }));
      const { id, log } = await begin([{ id: "stream", isEnded: false, requestIds: [7], events }]);
      for (const { sequence } of events) tell(log, sequence);
      const count = `SELECT count(*) FROM owlclaw_session_events WHERE session = '${storedNameOf(id)}'`;
      const stored = (): Promise<string> =>
        until(
          () => service.sql(count),
          (text) => text === "2",
        );
      await stored();
      const epoch = await database.putServer(FIRST, "http://first", 0);
      expect(await database.putServer(FIRST, "http://first", 0)).toBe(epoch);
      await service.kill();
      await service.start();
      expect(service.sql("SELECT count(*) FROM owlclaw_sessions")).toBe("0");
      expect(await database.putServer(FIRST, "http://first", 0)).not.toBe(epoch);
      first.writeAgain();
      await stored();
      expect(await second.take(id, FIRST)).toMatchObject({ streams: [{ id: "stream", events }] });
    });

    test("are awaited for a lease after a crash of the database, and then they are gone", async () => {
      const { id, log } = await begin();
      tell(log, 1);
      const other = newOwnedId(SECOND);
      expect(await second.locate(other, SECOND, 0)).toMatchObject({ isAwaited: false });
      await service.kill();
      await service.start();
      const located = (sessionId: string, leaseMs: number) =>
        until(
          () => second.locate(sessionId, FIRST, leaseMs).catch(() => undefined),
          (location) => location !== undefined,
        );
      expect(await located(id, LEASE_MS)).toMatchObject({ isAwaited: true });
      await database.putServer(SECOND, "http://second", 0);
      expect(await located(id, LEASE_MS)).toMatchObject({ isAwaited: true });
      first.writeAgain();
      await until(
        () => located(id, LEASE_MS),
        (location) => location?.isAwaited === false,
      );
      expect(await located(other, LEASE_MS)).toMatchObject({ isAwaited: true });
      expect(await located(other, 0)).toMatchObject({ isAwaited: false });
    });

    test("that have expired count for nothing, and are purged", async () => {
      const { id, log } = await begin();
      tell(log, 1);
      await written(log);
      service.sql(`UPDATE owlclaw_sessions SET until = now() WHERE key = '${storedNameOf(id)}'`);
      expect(await second.read(id)).toBeUndefined();
      expect(await second.take(id, FIRST)).toBeUndefined();
      service.sql("SELECT owlclaw_purge_sessions()");
      expect(dump()).not.toContain(storedNameOf(id));
    });

    test("of which too much waits for the database are given up there, whole, and nothing grows", async () => {
      const { id, log } = await begin();
      const blocker = new pg.Client({ connectionString: service.url });
      await blocker.connect();
      await blocker.query("BEGIN; LOCK TABLE owlclaw_sessions IN ACCESS EXCLUSIVE MODE");
      const data = "x".repeat(1024 * 1024);
      for (let sequence = 1; sequence <= 40; sequence++)
        log.event("large", { event: { sequence, data }, keep: 4, about: { requestIds: [] } });
      await blocker.end();
      await until(
        () => second.read(id),
        (state) => state === undefined,
      );
      expect(await second.take(id, FIRST)).toBeUndefined();
    });

    test("states of calls are used once, whichever server asks, until they have ended", async () => {
      const uses = await Promise.all(Array.from({ length: 8 }, () => database.useState("state", 600_000)));
      expect(uses.filter(Boolean)).toHaveLength(1);
      service.sql("UPDATE owlclaw_used_states SET until = now()");
      expect(await database.useState("state", 600_000)).toBe(true);
    });
  },
);
