import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { redisLimitEngine } from "../../src/governance/limits/redis/redis-limit-engine.ts";
import { SharedLimitStore } from "../../src/governance/limits/shared/shared-limit-store.ts";
import { RedisConnection } from "../../src/redis/redis-connection.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { REDIS_MISSING, type RedisService, startRedis } from "../services/redis.ts";
import { admit, lease } from "../unit/governance/limit-store-contract.ts";
import { counter } from "../unit/governance/limits.ts";
import { type SharedLimitLab, sharedLimitContract, sharedLimitLab } from "./shared-limits.ts";

describe.skipIf(REDIS_MISSING !== undefined)(
  `limits in a real Redis${REDIS_MISSING === undefined ? "" : `: ${REDIS_MISSING}`}`,
  () => {
    let redis: RedisService;
    let connection: RedisConnection;
    let lab: SharedLimitLab;

    beforeAll(async () => {
      redis = await startRedis();
      // A disk that is busy with what other tests wrote can keep Redis waiting for more than a second.
      connection = await RedisConnection.open({ url: redis.url, logger: SILENT_LOGGER, timeoutMs: 20_000 });
      lab = sharedLimitLab(redisLimitEngine(connection));
    });
    afterAll(async () => {
      connection.close();
      await redis.stop();
    });

    sharedLimitContract("Redis", () => lab);

    test("a killed Redis closes the door; when it is back, nothing is forgotten and nothing is booked twice", async () => {
      const own = await startRedis();
      const line = await RedisConnection.open({ url: own.url, logger: SILENT_LOGGER, timeoutMs: 5000 });
      const store = new SharedLimitStore({ engine: redisLimitEngine(line), timeZone: () => "UTC", leaseMs: 2000 });
      const limited = counter({ minute: 100, atOnce: 10, budget: 100 });
      const [first, second] = [await lease(store, limited, 30), await lease(store, limited, 30)];
      await store.settle(first, 20);
      await own.kill();
      await expect(admit(store, limited, 1)).rejects.toMatchObject({ kind: "store_unavailable", retryable: true });
      await expect(store.settle(second, 25)).rejects.toMatchObject({ kind: "store_unavailable" });
      await own.start();
      await expect
        .poll(() => store.usage([limited]).catch(() => undefined), { timeout: 20_000 })
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
      const line = await RedisConnection.open({ url: own.url, logger: SILENT_LOGGER, timeoutMs: 5000 });
      const store = new SharedLimitStore({ engine: redisLimitEngine(line), timeZone: () => "UTC", leaseMs: 10_000 });
      const limited = counter({ atOnce: 10, budget: 100 });
      const held = await lease(store, limited, 30);
      // Redis runs the batch and the line is cut before the answer.
      await connectionCutAfter(own, async () => {
        await expect(Promise.all([store.settle(held, 20), admit(store, limited, 40)])).rejects.toMatchObject({
          kind: "store_unavailable",
        });
      });
      await expect
        .poll(() => store.usage([limited]).catch(() => undefined), { timeout: 20_000 })
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
