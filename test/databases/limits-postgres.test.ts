import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PostgresLimitEngine } from "../../src/governance/limits/postgres/postgres-limit-engine.ts";
import { SharedLimitStore } from "../../src/governance/limits/shared/shared-limit-store.ts";
import { POSTGRES_MISSING, type PostgresService, startPostgres } from "../services/postgres.ts";
import { admit, lease, passed } from "../unit/governance/limit-store-contract.ts";
import { counter } from "../unit/governance/limits.ts";
import { type SharedLimitLab, sharedLimitContract, sharedLimitLab } from "./shared-limits.ts";

describe.skipIf(POSTGRES_MISSING !== undefined)(
  `limits in a real PostgreSQL${POSTGRES_MISSING === undefined ? "" : `: ${POSTGRES_MISSING}`}`,
  () => {
    let postgres: PostgresService;
    let engine: PostgresLimitEngine;
    let lab: SharedLimitLab;

    beforeAll(async () => {
      postgres = await startPostgres();
      engine = await PostgresLimitEngine.open(postgres.url);
      lab = sharedLimitLab(engine);
    });
    afterAll(async () => {
      await engine.close();
      await postgres.stop();
    });

    sharedLimitContract("PostgreSQL", () => lab);

    test("several connections at once let through exactly what the limit says", async () => {
      const engines = await Promise.all(Array.from({ length: 4 }, () => PostgresLimitEngine.open(postgres.url)));
      const stores = engines.map(
        (each) => new SharedLimitStore({ engine: each, timeZone: () => "UTC", leaseMs: 15_000, space: "together" }),
      );
      const limited = counter({ minute: 100, budget: 1000 });
      const counts = await Promise.all(stores.map((store) => passed(store, limited, 60)));
      expect(counts.reduce((sum, count) => sum + count)).toBe(100);
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(engines.map((each) => each.close()));
    });

    test("a killed PostgreSQL closes the door; when it is back, nothing is forgotten and nothing is booked twice", async () => {
      const own = await startPostgres();
      const line = await PostgresLimitEngine.open(own.url);
      const store = new SharedLimitStore({ engine: line, timeZone: () => "UTC", leaseMs: 60_000 });
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
      await line.close();
      await own.stop();
    });

    test("a batch that was run though its answer was lost is not run again, and what it took is given back", async () => {
      const own = await PostgresLimitEngine.open(postgres.url);
      let isCut = false;
      const deaf = {
        space: "deaf",
        isReady: true,
        run: async (batch: string) => {
          const reply = await own.run(batch);
          if (isCut) throw new Error("the line was cut before the answer");
          return reply;
        },
        forget: own.forget.bind(own),
        onReturn: () => undefined,
      };
      const store = new SharedLimitStore({ engine: deaf, timeZone: () => "UTC", leaseMs: 60_000 });
      const limited = counter({ atOnce: 10, budget: 100 });
      const held = await lease(store, limited, 30);
      isCut = true;
      await expect(Promise.all([store.settle(held, 20), admit(store, limited, 40)])).rejects.toMatchObject({
        kind: "store_unavailable",
      });
      isCut = false;
      await expect
        .poll(() => store.usage([limited]), { timeout: 10_000 })
        .toMatchObject([
          { name: "concurrency", used: 0 },
          { name: "monthlyBudget", used: 20 },
        ]);
      await store.close();
      await own.close();
    });

    test("what nobody looks back at any more is removed, and nothing else", async () => {
      const store = new SharedLimitStore({ engine, timeZone: () => "UTC", leaseMs: 60_000, space: "tidy" });
      const limited = counter({ minute: 10, day: 10, atOnce: 10, budget: 100 });
      await lease(store, limited, 30);
      postgres.sql(`
        INSERT INTO limit_calls SELECT 'tidy', key, 5, 1 FROM limit_minutes WHERE space = 'tidy';
        UPDATE limit_minutes SET n = n + 1 WHERE space = 'tidy';
        INSERT INTO limit_days VALUES ('tidy', 'x', '2020-01-01', 5);
        INSERT INTO limit_spent VALUES ('tidy', 'x', '2020-01', 5);
        INSERT INTO limit_held VALUES ('tidy', 'x', '', 'nobody', 5);
        INSERT INTO limit_holders VALUES ('tidy', 'old', 5, 1, TRUE)`);
      const tables = ["limit_calls", "limit_days", "limit_spent", "limit_held", "limit_holders"];
      const counts = (): number[] =>
        tables.map((table) => Number(postgres.sql(`SELECT count(*) FROM ${table} WHERE space = 'tidy'`)));
      expect(counts()).toEqual([2, 2, 1, 3, 2]);
      await engine.tidy("tidy");
      expect(counts()).toEqual([1, 1, 0, 2, 1]);
      expect(await store.usage([limited])).toMatchObject([{ used: 1 }, { used: 1 }, { used: 1 }, { used: 30 }]);
      await store.close();
    });
  },
);
