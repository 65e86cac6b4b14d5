import { createClient, type RedisClientType } from "@redis/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newHomeId } from "../../src/cluster/home-id.ts";
import type { SessionLog, SessionSource } from "../../src/cluster/session-log.ts";
import { storedNameOf } from "../../src/cluster/session-seal.ts";
import type { StoredStream } from "../../src/cluster/session-state.ts";
import { SessionStore } from "../../src/cluster/session-store.ts";
import { RedisConnection } from "../../src/platform/redis-connection.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { REDIS_MISSING, type RedisService, startRedis } from "../services/redis.ts";
import { until } from "../integration/harness.ts";

const FIRST = "AAAAAAAAAAAA";
const SECOND = "BBBBBBBBBBBB";
const STATE = { ownerId: "ada", initialize: { protocolVersion: "2025-11-25" }, watched: ["fixture://counter"] };

describe.skipIf(REDIS_MISSING !== undefined)(
  `sessions kept in Redis${REDIS_MISSING === undefined ? "" : `: ${REDIS_MISSING}`}`,
  () => {
    let service: RedisService;
    let redis: RedisClientType;
    let connection: RedisConnection;
    let first: SessionStore;
    let second: SessionStore;

    beforeAll(async () => {
      service = await startRedis();
      connection = await RedisConnection.open({ url: service.url, logger: SILENT_LOGGER, timeoutMs: 30_000 });
      redis = createClient({ url: service.url });
      redis.on("error", () => undefined);
      await redis.connect();
      const common = { connection, clusterKey: "k".repeat(32), lifeMs: 600_000, endedLifeMs: 300_000 };
      first = new SessionStore({ ...common, serverId: FIRST });
      second = new SessionStore({ ...common, serverId: SECOND });
    });
    afterAll(async () => {
      await Promise.all([first.close(), second.close()]);
      connection.close();
      redis.destroy();
      await service.stop();
    });

    async function begin(streams: readonly StoredStream[] = []): Promise<{ id: string; log: SessionLog }> {
      const id = newHomeId(FIRST);
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
      await redis.set(`owlclaw:server:${FIRST}`, "http://first");
      expect(await second.locate(id, FIRST)).toEqual({ home: FIRST, url: "http://first" });
      expect(await second.take(id, FIRST)).toBeUndefined();
      await redis.del(`owlclaw:server:${FIRST}`);
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
      expect(await second.locate(id, FIRST)).toMatchObject({ home: SECOND });
    });

    test("are not written by a server that has lost them, which then knows", async () => {
      const { id, log } = await begin();
      tell(log, 1);
      await written(log);
      await second.take(id, FIRST);
      const before = await service.dump("owlclaw:session:*");
      const late = first.log(id, { state: () => ({ ...STATE, ownerId: "mallory" }), streams: () => [] });
      tell(late, 2);
      await until(
        () => late.isTaken,
        (isTaken) => isTaken,
      );
      late.end();
      expect(await service.dump("owlclaw:session:*")).toBe(before);
    });

    test("have as many events as are kept, each once, and an end", async () => {
      const { id, log } = await begin();
      for (let sequence = 1; sequence <= 50; sequence++) tell(log, sequence, Math.min(sequence, 10));
      tell(log, 50, 10);
      tell(log, 49, 10);
      log.streamEnded("stream", { requestIds: [7] });
      await written(log);
      for (const key of await service.keys("owlclaw:session:*")) expect(await redis.pTTL(key)).toBeGreaterThan(0);
      const taken = await second.take(id, FIRST);
      expect(taken?.streams[0]?.isEnded).toBe(true);
      expect(taken?.streams[0]?.events.map(({ sequence }) => sequence)).toEqual(
        Array.from({ length: 10 }, (_, index) => 41 + index),
      );
    });

    test("that Redis has changed, or has in another's place, are nothing", async () => {
      const [one, other] = [await begin(), await begin()];
      for (const { log } of [one, other]) tell(log, 1);
      await written(one.log);
      const streamOf = ({ id }: { readonly id: string }): string => `owlclaw:session:${storedNameOf(id)}:stream`;
      await redis.copy(streamOf(one), streamOf(other), { REPLACE: true });
      expect(await second.take(other.id, FIRST)).toBeUndefined();
      expect(await second.take(one.id, FIRST)).toMatchObject({ streams: [{ events: [{ data: "event 1" }] }] });
    });

    test("of which too much waits for Redis are given up there, whole, and nothing grows", async () => {
      const { id, log } = await begin();
      service.pause();
      const data = "x".repeat(1024 * 1024);
      for (let sequence = 1; sequence <= 40; sequence++)
        log.event("large", { event: { sequence, data }, keep: 4, about: { requestIds: [] } });
      service.resume();
      await until(
        () => second.read(id),
        (state) => state === undefined,
      );
      expect(await second.take(id, FIRST)).toBeUndefined();
    });
  },
);
