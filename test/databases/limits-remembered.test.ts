import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { isOwlError } from "../../src/errors/owl-error.ts";
import { SpendBook } from "../../src/governance/limits/postgres/spend-book.ts";
import { redisLimitEngine } from "../../src/governance/limits/redis/redis-limit-engine.ts";
import { SharedLimitStore } from "../../src/governance/limits/shared/shared-limit-store.ts";
import type { Admission } from "../../src/governance/limits/limit-store.ts";
import type { Counter } from "../../src/governance/policy/terms.ts";
import { RedisConnection } from "../../src/redis/redis-connection.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { SERVICES_MISSING } from "../services/cluster.ts";
import { type PostgresService, startPostgres } from "../services/postgres.ts";
import { type RedisService, startRedis } from "../services/redis.ts";
import { lease } from "../unit/governance/limit-store-contract.ts";
import { counter } from "../unit/governance/limits.ts";
import { sharedLimitContract, sharedLimitLab, type SharedLimitLab } from "./shared-limits.ts";
import { describeUnless } from "../setup/mandatory.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

describeUnless(SERVICES_MISSING, "limits in a real Redis, budgets on file in a real PostgreSQL", () => {
  let postgres: PostgresService;
  let redis: RedisService;
  let lab: SharedLimitLab;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    lab = sharedLimitLab((await line()).engine);
  });
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });
  afterAll(() => Promise.all([postgres.stop(), redis.stop()]));

  async function line() {
    // A disk that is busy with what other tests wrote can keep Redis waiting for more than a second.
    const connection = await RedisConnection.open({ url: redis.url, logger: SILENT_LOGGER, timeoutMs: 20_000 });
    const book = await SpendBook.open(postgres.url);
    return {
      engine: redisLimitEngine(connection, book),
      async close() {
        connection.close();
        await book.close();
      },
    };
  }

  /** A server of its own, as far as the store can tell. */
  async function server({ space, leaseMs = 10_000 }: { space: string; leaseMs?: number }): Promise<SharedLimitStore> {
    const { engine, close } = await line();
    const store = new SharedLimitStore({ engine, timeZone: () => "UTC", leaseMs, space });
    closing.push(async () => {
      await store.close();
      await close();
    });
    return store;
  }

  /** Asks again while it is told that nobody can count. */
  async function admitted(store: SharedLimitStore, counters: Counter, reserveMicros: number): Promise<Admission> {
    for (;;) {
      try {
        return await store.admit({ counters: [counters], reserveMicros });
      } catch (error) {
        if (!isOwlError(error) || error.kind !== "store_unavailable") throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  const onFile = (space: string): string =>
    postgres.sql(`SELECT COALESCE(sum(micros), 0) FROM limit_spent WHERE space = '${space}'`);

  sharedLimitContract("Redis and PostgreSQL", () => lab);

  test.each(["flush", "forget"] as const)(
    "[004-R8.2] a Redis that loses its memory (%s) in the middle of a budget for 300 calls: exactly 300 pass",
    async (loss) => {
      const space = `${loss}:`;
      const servers = [await server({ space }), await server({ space }), await server({ space })];
      const limited = counter({ budget: 300 });
      let passed = 0;
      const losses = new Set([50, 120, 200, 290]);
      let lost = Promise.resolve();
      await Promise.all(
        Array.from({ length: 24 }, async (_, index) => {
          const store = servers[index % 3] ?? servers[0];
          for (;;) {
            const admission = store === undefined ? undefined : await admitted(store, limited, 1);
            if (store === undefined || admission === undefined || !admission.ok) return;
            passed += 1;
            if (losses.delete(passed)) await (lost = lost.then(redis[loss]));
            // What cannot be counted at once is counted later.
            await store.settle(admission.lease, 1).catch(() => undefined);
          }
        }),
      );
      expect([passed, losses.size]).toEqual([300, 0]);
      await expect.poll(() => onFile(space), { timeout: 20_000 }).toBe("300");
      const [first] = servers;
      await expect.poll(() => first?.usage([limited])).toMatchObject([{ used: 300 }]);
    },
  );

  test("what calls hold that run while Redis forgets is held afterwards, until they end", async () => {
    const [one, other] = [await server({ space: "held:" }), await server({ space: "held:" })];
    const limited = counter({ atOnce: 2, budget: 100 });
    const held = await lease(one, limited, 60);
    await lease(other, limited, 10);
    await redis.flush();
    expect(await admitted(other, limited, 30)).toMatchObject({ refusal: { name: "concurrency", used: 2 } });
    await one.settle(held, 45);
    const admission = await admitted(other, limited, 46);
    expect(admission).toMatchObject({ refusal: { name: "monthlyBudget", used: 55 } });
    expect(await admitted(one, limited, 45)).toMatchObject({ ok: true });
  });

  test("a server that does not say what it holds is waited for, for a lease", async () => {
    const space = "silent:";
    const [silent, other] = [await server({ space, leaseMs: 6000 }), await server({ space, leaseMs: 6000 })];
    const limited = counter({ budget: 100 });
    await lease(silent, limited, 60);
    await lease(other, limited, 0);
    silent.abandon();
    await redis.flush();
    await expect(lease(other, limited, 60)).rejects.toMatchObject({ kind: "store_unavailable", retryable: true });
    expect(await admitted(other, limited, 60)).toMatchObject({ ok: true });
  });

  test("the server that begins a new memory is waited for like the others", async () => {
    const space = "beginner:";
    const { engine, close } = await line();
    closing.push(close);
    // It has begun, and not yet said what it holds.
    const other = await server({ space, leaseMs: 6000 });
    await engine.memoryOf?.(space, 6000).recover({ isStale: false });
    const limited = counter({ budget: 100 });
    await expect(lease(other, limited, 60)).rejects.toMatchObject({ kind: "store_unavailable" });
    expect(await admitted(other, limited, 60)).toMatchObject({ ok: true });
  });

  test("a Redis that comes back as it was before counts what is on file", async () => {
    const space = "stale:";
    const store = await server({ space });
    const limited = counter({ budget: 100 });
    await store.settle(await lease(store, limited, 70), 70);
    // A copy that is two batches old.
    const [seq = ""] = await redis.keys(`${space}seq:*`);
    const months = await redis.keys(`${space}m:*`);
    // At once: the server looks every two seconds, and would take half of it for the whole.
    await redis.command("MSET", seq, "1", ...months.flatMap((key) => [key, "0"]));
    expect(await admitted(store, limited, 31)).toMatchObject({ refusal: { used: 70 } });
    expect(await admitted(store, limited, 30)).toMatchObject({ ok: true });
  });

  test("what Redis had counted alone is put on file when there is a database", async () => {
    const space = "former:";
    const connection = await RedisConnection.open({ url: redis.url, logger: SILENT_LOGGER, timeoutMs: 20_000 });
    const engine = redisLimitEngine(connection);
    const former = new SharedLimitStore({ engine, timeZone: () => "UTC", leaseMs: 60_000, space });
    const limited = counter({ key: "a:b", budget: 100 });
    await former.settle(await lease(former, limited, 70), 70);
    await former.close();
    connection.close();
    const store = await server({ space });
    expect(await store.usage([limited])).toMatchObject([{ used: 70 }]);
    expect(onFile(space)).toBe("70");
    await redis.flush();
    expect(await store.usage([limited])).toMatchObject([{ used: 70 }]);
  });

  test("a PostgreSQL that is killed while money is booked has it once when it is back", async () => {
    const space = "killed:";
    const store = await server({ space });
    const limited = counter({ budget: 1000 });
    const leases = await Promise.all(Array.from({ length: 20 }, () => lease(store, limited, 10)));
    await store.settle(leases[0] ?? (await lease(store, limited)), 10);
    const settled = Promise.allSettled(leases.slice(1).map((each) => store.settle(each, 10)));
    await postgres.kill();
    await settled;
    await postgres.start();
    await expect.poll(() => onFile(space), { timeout: 30_000 }).toBe("200");
    await redis.flush();
    expect(await admitted(store, limited, 801)).toMatchObject({ refusal: { used: 200 } });
  });
});
