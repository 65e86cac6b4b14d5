import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RedisLimitStore } from "../../src/governance/limits/redis/redis-limit-store.ts";
import { RedisConnection } from "../../src/redis/redis-connection.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { REDIS_MISSING, type RedisService, startRedis } from "../services/redis.ts";
import { callsInLivesHeldAgainstModel } from "../unit/governance/limit-model.ts";
import { admit, lease, limitStoreContract, passed } from "../unit/governance/limit-store-contract.ts";
import { counter, HandClock, type LimitLab, type StoreOptions } from "../unit/governance/limits.ts";

const NOON = "2026-11-15T12:00:00Z";
/** Days pass in these tests at once: only where a test is about it does a server lose its places by time. */
const FOR_EVER_MS = 1e14;

describe.skipIf(REDIS_MISSING !== undefined)(
  `limits in a real Redis${REDIS_MISSING === undefined ? "" : `: ${REDIS_MISSING}`}`,
  () => {
    let redis: RedisService;
    let connection: RedisConnection;
    let places = 0;

    beforeAll(async () => {
      redis = await startRedis();
      connection = await RedisConnection.open({ url: redis.url, logger: SILENT_LOGGER, timeoutMs: 1000 });
    });
    afterAll(async () => {
      connection.close();
      await redis.stop();
    });

    const lab = {
      newPlace: () => `test:${++places}:`,
      open: ({
        place = `test:${++places}:`,
        clock,
        timeZone = "UTC",
        leaseMs = FOR_EVER_MS,
      }: StoreOptions & { readonly leaseMs?: number } = {}) =>
        new RedisLimitStore({
          connection,
          timeZone: () => timeZone,
          leaseMs,
          prefix: place,
          ...(clock !== undefined && { clock }),
        }),
      kill: async (store) => {
        if (!(store instanceof RedisLimitStore)) throw new TypeError("not ours");
        store.abandon();
        // What the passing of its lease does.
        for (let place = 1; place <= places; place += 1)
          await connection.send(["ZREM", `test:${place}:alive`, store.holder]);
      },
    } satisfies LimitLab;

    limitStoreContract(lab);

    test("[004-R8.4] two servers on one Redis never let through what the model forbids, nor refuse what it allows", async () => {
      // A run in which nothing passes would prove nothing.
      expect(await callsInLivesHeldAgainstModel(lab, { numRuns: 25 })).toBeGreaterThan(5);
    }, 60_000);

    test("by Redis' own clock and day, whatever this machine's says", async () => {
      const store = lab.open();
      const limited = counter({ minute: 3, day: 5 });
      expect(await passed(store, limited, 10)).toBe(3);
      expect(await admit(store, limited)).toMatchObject({ refusal: { name: "callsPerMinute", used: 3 } });
      await store.close();
    });

    test("a server that gives no sign of life for a lease loses its places and reservations; one that comes back goes on", async () => {
      const place = lab.newPlace();
      const clock = new HandClock(NOON);
      const silent = lab.open({ place, clock, leaseMs: 15_000 });
      const other = lab.open({ place, clock, leaseMs: 15_000 });
      const limited = counter({ atOnce: 2, budget: 100 });
      const held = await lease(silent, limited, 60);
      await lease(silent, limited, 40);
      expect(await admit(other, limited)).toMatchObject({ refusal: { name: "concurrency", used: 2 } });
      clock.pass(14_999);
      expect(await admit(other, limited)).toMatchObject({ refusal: { name: "concurrency", used: 2 } });
      clock.pass(1);
      const taken = await lease(other, limited, 100);
      // What the silent one settles now is booked, and takes nothing from those who live.
      await silent.settle(held, 60);
      expect(await other.usage([limited])).toMatchObject([{ used: 1 }, { used: 160 }]);
      await other.settle(taken, 0);
      expect(await silent.usage([limited])).toMatchObject([{ used: 0 }, { used: 60 }]);
      await Promise.all([silent.close(), other.close()]);
    });

    test("amounts as large as the configuration allows are counted to the last micro-unit", async () => {
      const store = lab.open();
      const limited = counter({ budget: 1e15 });
      await store.settle(await lease(store, limited, 1e15 - 1), 1e15 - 1);
      expect(await store.usage([limited])).toMatchObject([{ used: 1e15 - 1 }]);
      expect((await admit(store, limited, 1)).ok).toBe(true);
      expect((await admit(store, limited, 1)).ok).toBe(false);
      await store.close();
    });

    test("a killed Redis closes the door; when it is back, nothing is forgotten and nothing is booked twice", async () => {
      const own = await startRedis();
      const line = await RedisConnection.open({ url: own.url, logger: SILENT_LOGGER, timeoutMs: 1000 });
      const store = new RedisLimitStore({ connection: line, timeZone: () => "UTC", leaseMs: 2000 });
      const limited = counter({ minute: 100, atOnce: 10, budget: 100 });
      const [first, second] = [await lease(store, limited, 30), await lease(store, limited, 30)];
      await store.settle(first, 20);
      await own.kill();
      await expect(admit(store, limited, 1)).rejects.toMatchObject({ kind: "store_unavailable", retryable: true });
      await expect(store.settle(second, 25)).rejects.toMatchObject({ kind: "store_unavailable" });
      await own.start();
      await expect
        .poll(() => store.usage([limited]).catch(() => undefined), { timeout: 10_000 })
        .toMatchObject([
          { name: "callsPerMinute", used: 2 },
          { name: "concurrency", used: 0 },
          { name: "monthlyBudget", used: 45 },
        ]);
      await store.close();
      line.close();
      await own.stop();
    });

    test("a batch that was run though its answer was lost is not run again, and what it took is given back", async () => {
      const own = await startRedis();
      const line = await RedisConnection.open({ url: own.url, logger: SILENT_LOGGER, timeoutMs: 1000 });
      const store = new RedisLimitStore({ connection: line, timeZone: () => "UTC", leaseMs: 10_000 });
      const limited = counter({ atOnce: 10, budget: 100 });
      const held = await lease(store, limited, 30);
      // Redis runs the batch and the line is cut before the answer.
      await connectionCutAfter(own, async () => {
        await expect(Promise.all([store.settle(held, 20), admit(store, limited, 40)])).rejects.toMatchObject({
          kind: "store_unavailable",
        });
      });
      await expect
        .poll(() => store.usage([limited]).catch(() => undefined), { timeout: 10_000 })
        .toMatchObject([
          { name: "concurrency", used: 0 },
          { name: "monthlyBudget", used: 20 },
        ]);
      await store.close();
      line.close();
      await own.stop();
    });
  },
);

/** Stops the process of Redis from answering: what it gets meanwhile it runs when it goes on, for nobody. */
async function connectionCutAfter(own: RedisService, act: () => Promise<void>): Promise<void> {
  own.pause();
  try {
    await act();
  } finally {
    own.resume();
  }
}
