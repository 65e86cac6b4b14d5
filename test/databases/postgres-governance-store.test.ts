import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { OwlError } from "../../src/errors/owl-error.ts";
import { PostgresGovernanceStore } from "../../src/governance/store/postgres/postgres-governance-store.ts";
import { loadLedgerKeys } from "../../src/governance/ledger/keys.ts";
import { Database } from "../../src/platform/postgres-database.ts";
import type { Lease } from "../../src/governance/store/governance-store.ts";
import { openPostgresReader, PostgresStore } from "../../src/governance/ledger/postgres/postgres-store.ts";
import { POSTGRES_MISSING, type PostgresService, startPostgres } from "../services/postgres.ts";
import { storeContract } from "../unit/governance/store/store-contract.ts";
import {
  admit,
  counter,
  draft,
  HandClock,
  lease,
  passed,
  type StoreLab,
  type StoreOptions,
  UNKNOWN,
} from "../unit/governance/store/store-lab.ts";
import { callsInLivesHeldAgainstModel } from "../unit/governance/store/store-model.ts";

/** Days pass in these tests at once: a server dies where a test says so. */
const FOR_EVER_MS = 1e12;
const folder = mkdtempSync(join(tmpdir(), "owlclaw-store-"));
const keys = loadLedgerKeys({ folder, create: true });

function optionsFor(url: string) {
  return { url, keys, checkpointEvery: 1000, timeZone: () => "UTC", leaseMs: FOR_EVER_MS };
}

/** Each place is a database of its own. */
function postgresLab(service: () => PostgresService): StoreLab {
  let places = 0;
  const urls = new WeakMap<object, string>();
  const newPlace = (): string => {
    const name = `place_${++places}`;
    service().sql(`CREATE DATABASE ${name}`);
    return service().url.replace("/postgres?", `/${name}?`);
  };
  const bury: StoreLab["bury"] = async (store) => {
    if (!(store instanceof PostgresGovernanceStore)) throw new TypeError("not ours");
    const database = new Database({ url: urls.get(store) ?? "", use: "write" });
    await database.query("UPDATE call_servers SET beat_at = 0 WHERE id = $1", [store.processId]);
    await database.close();
  };
  return {
    newPlace,
    bury,
    reader: (place) => openPostgresReader({ url: place, loadKeys: () => keys }),
    async open({ place = newPlace(), clock, timeZone = "UTC" }: StoreOptions = {}) {
      const store = await PostgresGovernanceStore.open({
        ...optionsFor(place),
        timeZone: () => timeZone,
        ...(clock !== undefined && { clock }),
      });
      urls.set(store, place);
      return store;
    },
    async kill(store) {
      await store.abandon();
      await bury(store);
    },
  };
}

describe.skipIf(POSTGRES_MISSING !== undefined)(
  `the governance store in a real PostgreSQL${POSTGRES_MISSING === undefined ? "" : `: ${POSTGRES_MISSING}`}`,
  () => {
    let postgres: PostgresService;
    const lab = postgresLab(() => postgres);

    beforeAll(async () => {
      postgres = await startPostgres();
    });
    afterAll(async () => {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    storeContract(lab);

    test("[004-R8.4] two servers on one database never let through what the model forbids, nor refuse what it allows", async () => {
      // A run in which nothing passes would prove nothing.
      expect(await callsInLivesHeldAgainstModel(lab, { numRuns: 15, countsLater: true })).toBeGreaterThan(5);
    });

    test("[004-R8.4] [004-R8.2] three servers at once let through exactly what limits and budget allow", async () => {
      const place = lab.newPlace();
      const stores = await Promise.all([1, 2, 3].map(() => lab.open({ place })));
      const limited = counter({ minute: 100, budget: 1000 });
      const counts = await Promise.all(stores.map((store) => passed(store, limited, 60)));
      expect(counts.reduce((sum, count) => sum + count)).toBe(100);
      const paid = counter({ key: "bob", budget: 50 });
      const calls = await Promise.all(
        stores.flatMap((store) => Array.from({ length: 30 }, () => admit(store, paid, { reserve: 1 }))),
      );
      expect(calls.filter(({ ok }) => ok)).toHaveLength(50);
      await Promise.all(stores.map((store) => store.close()));
    });

    test("a killed PostgreSQL refuses calls; when it is back, what was admitted is settled once", async () => {
      const own = await startPostgres();
      const store = await PostgresGovernanceStore.open(optionsFor(own.url));
      const limited = counter({ minute: 100, atOnce: 10, budget: 100 });
      const [first, second] = [
        await lease(store, limited, { reserve: 30 }),
        await lease(store, limited, { reserve: 30 }),
      ];
      // The settlement is durable, and all that was committed before it is durable with it.
      await store.settle([{ call: first.call, costMicros: 20, draft: draft() }]);
      await own.kill();
      const refused = { kind: "store_unavailable", retryable: true };
      await expect(admit(store, limited, { reserve: 1 })).rejects.toMatchObject(refused);
      await expect(store.settle([{ call: second.call, costMicros: 25, draft: draft() }])).rejects.toMatchObject(
        refused,
      );
      await own.start();
      const settlement = { call: second.call, costMicros: 25, draft: draft() };
      await expect.poll(() => store.settle([settlement]).catch(() => undefined)).toMatchObject({ seqs: [2] });
      expect(await store.settle([settlement])).toMatchObject({ seqs: [0] });
      expect(await store.usage([limited])).toMatchObject([{ used: 2 }, { used: 0 }, { used: 45 }]);
      await store.close();
      await own.stop();
    });

    describe("a PostgreSQL that crashes before admissions have reached its disk", () => {
      const limited = counter({ minute: 10, day: 10, atOnce: 2, budget: 100 });
      const OWN_ROW = draft({ traceId: "f".repeat(32) });
      let own: PostgresService;

      /** Takes two calls, and crashes the database without them. The call of the second store is durable. */
      async function crashWithRunningCalls(): Promise<{
        readonly store: PostgresGovernanceStore;
        readonly other: PostgresGovernanceStore;
        readonly lost: Lease;
        readonly spent: number;
      }> {
        own = await startPostgres();
        own.sql("ALTER SYSTEM SET wal_writer_delay = '10s'");
        own.sql("SELECT pg_reload_conf()");
        const [store, other] = [
          await PostgresGovernanceStore.open(optionsFor(own.url)),
          await PostgresGovernanceStore.open(optionsFor(own.url)),
        ];
        const settled = await lease(other, limited, { reserve: 10 });
        await other.settle([{ call: settled.call, costMicros: 10, draft: draft() }]);
        const lost = await lease(store, limited, { reserve: 40, draft: UNKNOWN });
        await own.kill();
        await own.start();
        expect(own.sql("SELECT count(*) FROM call_starts")).toBe("0");
        return { store, other, lost, spent: 10 };
      }

      /** Connections that the crash has ended fail once. */
      async function again<T>(act: () => Promise<T>): Promise<T> {
        let result: T | undefined;
        await vi.waitFor(async () => (result = await act()), { timeout: 20_000 });
        return result as T;
      }

      async function close(...stores: readonly PostgresGovernanceStore[]): Promise<void> {
        for (const store of stores) await store.close();
        await own.stop();
      }

      test("books the cost of a call that ends after the crash, with its row", async () => {
        const { store, other, lost } = await crashWithRunningCalls();
        const settlement = { call: lost.call, costMicros: 35, draft: OWN_ROW };
        expect(await again(() => store.settle([settlement]))).toMatchObject({ seqs: [2] });
        expect(await store.usage([limited])).toMatchObject([{ used: 2 }, { used: 2 }, { used: 0 }, { used: 45 }]);
        // A second end of the same call counts for nothing.
        expect(await store.settle([settlement])).toMatchObject({ seqs: [0] });
        expect(await other.usage([limited])).toMatchObject([{ used: 2 }, { used: 2 }, { used: 0 }, { used: 45 }]);
        await close(store, other);
      });

      test("counts the calls that run on before the server admits another", async () => {
        const { store, other, lost } = await crashWithRunningCalls();
        const first = await again(() => lease(store, limited, { reserve: 30 }));
        expect(await admit(store, limited, { reserve: 0 })).toMatchObject({
          ok: false,
          refusal: { name: "concurrency" },
        });
        await store.settle([{ call: first.call, costMicros: 30 }]);
        expect(await admit(store, limited, { reserve: 30 })).toMatchObject({
          ok: false,
          refusal: { name: "monthlyBudget", used: 80 },
        });
        await store.settle([{ call: lost.call, costMicros: 40, draft: OWN_ROW }]);
        expect(await store.usage([limited])).toMatchObject([{ used: 3 }, { used: 3 }, { used: 0 }, { used: 80 }]);
        await close(store, other);
      });

      test("counts them for the other servers within a fifth of a lease", async () => {
        own = await startPostgres();
        own.sql("ALTER SYSTEM SET wal_writer_delay = '10s'");
        own.sql("SELECT pg_reload_conf()");
        const options = { ...optionsFor(own.url), leaseMs: 5000 };
        const [store, other] = [
          await PostgresGovernanceStore.open(options),
          await PostgresGovernanceStore.open(options),
        ];
        await lease(store, limited, { reserve: 40, draft: UNKNOWN });
        await own.kill();
        await own.start();
        await expect
          .poll(() => other.usage([limited]).catch(() => undefined))
          .toMatchObject([{ used: 1 }, { used: 1 }, { used: 1 }, { used: 40 }]);
        await close(store, other);
      });

      test("books a call once whose end was durable, and whose answer the crash has lost", async () => {
        const { store, other, lost } = await crashWithRunningCalls();
        const settlement = { call: lost.call, costMicros: 35, draft: OWN_ROW };
        await again(() => store.usage([limited]));
        const append = vi.spyOn(PostgresStore.prototype as unknown as { appendBy: () => unknown }, "appendBy");
        append.mockImplementationOnce(async function lostAnswer(this: unknown, ...args: []) {
          append.mockRestore();
          await (PostgresStore.prototype as unknown as { appendBy: () => unknown }).appendBy.apply(this, args);
          await own.kill();
          await own.start();
          throw new OwlError("store_unavailable", "the connection was lost behind the commit");
        });
        await expect(store.settle([settlement])).rejects.toMatchObject({ kind: "store_unavailable" });
        expect(own.sql("SELECT count(*) FROM ledger WHERE kind <> 'checkpoint'")).toBe("2");
        expect(await again(() => store.settle([settlement]))).toMatchObject({ seqs: [0] });
        expect(await again(() => other.usage([limited]))).toMatchObject([
          { used: 2 },
          { used: 2 },
          { used: 0 },
          { used: 45 },
        ]);
        expect(own.sql("SELECT count(*) FROM ledger WHERE kind <> 'checkpoint'")).toBe("2");
        await close(store, other);
      });

      test("leaves a call ended that another server has ended, and charges it once", async () => {
        const { store, other, lost } = await crashWithRunningCalls();
        await again(() => store.usage([limited]));
        // The call is back, and then the server is taken for dead.
        await again(async () => expect((await lease(store, limited, { reserve: 0 })).call).toBeGreaterThan(lost.call));
        own.sql(`UPDATE call_servers SET beat_at = 0 WHERE id = ${store.processId}`);
        expect(await other.recover()).toBe(2);
        expect(await store.settle([{ call: lost.call, costMicros: 35, draft: OWN_ROW }])).toMatchObject({ seqs: [0] });
        expect(await other.usage([limited])).toMatchObject([{ used: 3 }, { used: 3 }, { used: 0 }, { used: 50 }]);
        await close(store, other);
      });
    });

    test("an admission whose answer was lost holds nothing", async () => {
      const place = lab.newPlace();
      const store = await lab.open({ place });
      const limited = counter({ atOnce: 10, budget: 100 });
      const run = Database.prototype.transaction;
      vi.spyOn(Database.prototype, "transaction").mockImplementationOnce(async function lost(this: Database, act) {
        await run.call(this, act);
        throw new OwlError("store_unavailable", "the connection was lost behind the commit");
      });
      const held = admit(store, limited, { reserve: 40, draft: UNKNOWN });
      await expect(held).rejects.toMatchObject({ kind: "store_unavailable" });
      expect(await store.usage([limited])).toMatchObject([{ used: 1 }, { used: 40 }]);
      expect((await admit(store, limited, { reserve: 100 })).ok).toBe(true);
      await store.close();
    });

    test("by the clock of the database, whatever this machine's says, and on from where it was set back", async () => {
      const place = lab.newPlace();
      const store = await lab.open({ place });
      const limited = counter({ minute: 3, day: 5 });
      expect(await passed(store, limited, 10)).toBe(3);
      const database = new Database({ url: place, use: "write" });
      // As if the database had been an hour ahead until now.
      await database.query("UPDATE call_clock SET last = last + 3600000, shift = 3600000");
      await database.query("UPDATE call_times SET at = at + 3600000 WHERE at > 0");
      await database.query("UPDATE call_clock SET shift = 0");
      expect(await admit(store, limited)).toMatchObject({ refusal: { name: "callsPerMinute", used: 3 } });
      const { refusal } = (await admit(store, limited)) as { readonly refusal: { readonly retryAfterMs: number } };
      expect(refusal.retryAfterMs).toBeLessThanOrEqual(60_000);
      await database.close();
      await store.close();
    });

    test("a server that gives no sign of life for a lease loses what it holds, and its calls are settled", async () => {
      const place = lab.newPlace();
      const options = { ...optionsFor(place), leaseMs: 300 };
      const silent = await PostgresGovernanceStore.open(options);
      const limited = counter({ atOnce: 1, budget: 100 });
      await lease(silent, limited, { reserve: 60, draft: UNKNOWN });
      await silent.abandon();
      const other = await PostgresGovernanceStore.open(options);
      await expect.poll(() => other.recover()).toBe(1);
      expect(await other.usage([limited])).toMatchObject([{ used: 0 }, { used: 60 }]);
      await other.close();
    });

    test("budgets that an earlier version has counted go on", async () => {
      const place = lab.newPlace();
      const database = new Database({ url: place, use: "write" });
      const month = new Date().toISOString().slice(0, 7);
      await database.query("CREATE TABLE limit_days (space TEXT, key TEXT, day TEXT, n BIGINT)");
      await database.query("CREATE TABLE limit_spent (space TEXT, key TEXT, month TEXT, micros BIGINT)");
      await database.query("INSERT INTO limit_spent VALUES ('', 'ada', $1, 70)", [month]);
      await database.close();
      const store = await lab.open({ place });
      expect(await store.usage([counter({ budget: 100 })])).toMatchObject([{ used: 70 }]);
      await store.close();
    });

    // The clock of a test stands where the test says.
    test("days end at midnight of the database's clock as the time zone has it", async () => {
      const clock = new HandClock("2026-11-15T22:59:59Z");
      const store = await lab.open({ clock, timeZone: "Europe/Berlin" });
      const limited = counter({ day: 2 });
      expect(await passed(store, limited, 3)).toBe(2);
      clock.pass(1000);
      expect(await passed(store, limited, 3)).toBe(2);
      await store.close();
    });
  },
);
