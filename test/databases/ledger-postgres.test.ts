import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { OwlError } from "../../src/errors/owl-error.ts";
import { draftFromEntry } from "../../src/governance/ledger/ledger.ts";
import { loadLedgerKeys } from "../../src/governance/ledger/keys.ts";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { openPostgresStore } from "../../src/governance/ledger/postgres/postgres-store.ts";
import type { TimelineCount } from "../../src/governance/ledger/query.ts";
import type { LedgerStore } from "../../src/governance/ledger/store.ts";
import { createRedactor } from "../../src/telemetry/redact.ts";
import { POSTGRES_MISSING, type PostgresService, startPostgres } from "../services/postgres.ts";
import { ENTRY, entry } from "../unit/governance/ledger/ledger-entry.ts";
import {
  appendMany,
  dataFolder,
  ledgerConfig,
  openTestLedger,
  REFUSED,
} from "../unit/governance/ledger/ledger-fixture.ts";
import { appendUntilKilled } from "../integration/ledger-killed-appends.ts";

/** Noon is before midnight there, and soon after it. */
const SHIFTS = [
  { fromMs: 0, shiftMs: 11 * 3_600_000 },
  { fromMs: ENTRY.time + 5, shiftMs: 12 * 3_600_000 },
  { fromMs: ENTRY.time + 80_000_000, shiftMs: -12 * 3_600_000 },
];

describe.skipIf(POSTGRES_MISSING !== undefined)(
  `the ledger in a real PostgreSQL${POSTGRES_MISSING === undefined ? "" : `: ${POSTGRES_MISSING}`}`,
  () => {
    let postgres: PostgresService;
    let storeUrl: string;

    beforeAll(async () => {
      postgres = await startPostgres();
      storeUrl = postgres.url;
    });
    afterAll(() => postgres.stop());
    beforeEach(() => {
      postgres.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
      postgres.sql("ALTER DATABASE postgres RESET default_transaction_isolation");
    });

    async function newStore(): Promise<LedgerStore> {
      const keys = loadLedgerKeys({ folder: dataFolder(), create: true });
      const store = await openPostgresStore({ url: storeUrl, keys, checkpointEvery: 100 });
      onTestFinished(() => store.close());
      return store;
    }

    /** Ends every connection, as a restart or a fail-over does. */
    const endLines = (): string =>
      postgres.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'",
      );

    /** Another server's data folder with the same keys. */
    function sharedFolder(first: string): string {
      const folder = dataFolder();
      cpSync(join(first, "keys"), join(folder, "keys"), { recursive: true });
      return folder;
    }

    test("[004-R8.6] rows come back as they were written, whatever is in them", async () => {
      const odd = 'a\0b\u0001"\\\n\ud800 é 😀 %_*';
      const { ledger } = await openTestLedger(dataFolder(), { storeUrl });
      await ledger.append(
        entry({ label: odd, name: odd, args: { [odd]: odd }, result: odd, durationMs: 0.001, costMicros: 2 ** 52 }),
      );
      const row = await ledger.reader.get(1);
      expect(row).toMatchObject({ seq: 1, time: ENTRY.time, duration_us: 1, cost_micros: 2 ** 52, error_kind: null });
      expect(JSON.parse(row?.result ?? "")).toBe(odd);
      expect(await ledger.reader.verify({})).toMatchObject({ isIntact: true, rows: 1 });
    });

    const ISOLATIONS = ["read committed", "repeatable read", "serializable"];
    const isolateBy = (isolation: string): void => {
      postgres.sql(`ALTER DATABASE postgres SET default_transaction_isolation = '${isolation}'`);
    };

    test.each(ISOLATIONS)("three servers make one chain without gaps where transactions are %s", async (isolation) => {
      isolateBy(isolation);
      const first = dataFolder();
      const one = await openTestLedger(first, { storeUrl, checkpointEvery: 50 });
      const others = await Promise.all(
        [sharedFolder(first), sharedFolder(first)].map((folder) =>
          openTestLedger(folder, { storeUrl, checkpointEvery: 50 }),
        ),
      );
      const seqs = await Promise.all([one, ...others].map(({ ledger }) => appendMany(ledger, 200)));
      expect(new Set(seqs.flat()).size).toBe(600);
      const report = await one.ledger.reader.verify({});
      expect(report).toMatchObject({ isIntact: true, checkpoints: Math.floor(report.rows / 50) });
    });

    test("a server with other keys is refused at the start", async () => {
      await openTestLedger(dataFolder(), { storeUrl });
      const error = await openTestLedger(dataFolder(), { storeUrl }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ kind: "store_unavailable", hint: expect.stringContaining("ledger.keyFolder") });
    });

    test("lists, statistics and commands see the same as with SQLite", async () => {
      const seen = await Promise.all(
        [{ storeUrl }, {}].map(async (settings) => {
          const { ledger } = await openTestLedger(dataFolder(), settings);
          await appendMany(ledger, 30);
          await ledger.append(
            entry({ principal: "bob", name: "file_read", time: ENTRY.time + 90_000_000, durationMs: 0.6 }),
          );
          await ledger.append(entry({ principal: "bob", name: "fileXread", outcome: "timeout" }));
          await ledger.append(entry({ ...REFUSED, principal: "eve", name: "50%_off" }));
          await ledger.append(entry({ kind: "list", name: "tools/list" }));
          await ledger.append(entry({ name: "slow", flags: ["ran_on"], count: 0 }));
          const { reader } = ledger;
          const lists = await Promise.all(
            [
              {},
              { name: "file_*" },
              { name: "50%*" },
              { name: "?ile_read" },
              { principal: "bob" },
              { decision: "deny" as const },
              { outcome: "timeout" as const },
              { fromMs: ENTRY.time + 10, toMs: ENTRY.time + 20 },
              { text: "50%_OFF" },
              { text: "%" },
              { text: "fileXre_d" },
              { text: "\\" },
              { afterSeq: 10, throughSeq: 14 },
            ].map((filter) => reader.list(filter, { limit: 12 })),
          );
          const oldest = await reader.list({}, { limit: 3, order: "oldest", after: 5 });
          return {
            lists: [...lists, oldest].map((rows) => rows.map((row) => ({ ...row, hash: "" }))),
            stats: await reader.stats({}),
            localDays: (await reader.stats({}, SHIFTS)).days,
            counts: [
              await reader.count({}),
              await reader.count({ principal: "bob" }),
              await reader.count({ text: "Bob" }),
            ],
            timeline: sorted(await reader.timeline({}, { fromMs: ENTRY.time, bucketMs: 7000 })),
          };
        }),
      );
      expect(seen[0]).toEqual(seen[1]);
      expect(seen[0]?.stats.total.calls).toBe(33);
    });

    test.each(["principal = 'eve'", "cost_micros = 0", "label = ''", "hash = repeat('0', 64)", "args = '{}'"])(
      "a change behind its back is found: %s",
      async (change) => {
        const folder = dataFolder();
        const { ledger } = await openTestLedger(folder, { storeUrl });
        await appendMany(ledger, 20);
        postgres.sql(`UPDATE ledger SET ${change} WHERE seq = 7`);
        const report = await ledger.reader.verify({});
        expect(report.problems[0]).toMatchObject({ seq: 7, fault: "changed" });
      },
    );

    test("a server that was alone for a while goes behind the rows of one that came", async () => {
      const folder = dataFolder();
      const { ledger: first } = await openTestLedger(folder, { storeUrl });
      const { ledger: second } = await openTestLedger(folder, { storeUrl });
      const writers = [first, first, first, first, second, first, second, second, second, second, first, first, first];
      const seqs: number[] = [];
      for (const writer of writers) seqs.push((await writer.append(entry())).seq);
      const start = seqs[0] ?? 0;
      expect(seqs).toEqual(writers.map((_, index) => start + index));
      expect((await first.reader.verify({})).problems).toEqual([]);
    });

    test("dropped rows and a cut tail are found", async () => {
      const { ledger } = await openTestLedger(dataFolder(), { storeUrl });
      await appendMany(ledger, 20);
      const head = await ledger.reader.head();
      postgres.sql("DELETE FROM ledger WHERE seq = 7 OR seq > 15");
      expect((await ledger.reader.verify({ head })).problems.map(({ seq, fault }) => [seq, fault])).toEqual([
        [7, "missing"],
        [16, "head"],
      ]);
      await expect(ledger.append(entry())).rejects.toThrow("ends with row 15, and row 20 was written");
    });

    const swap = (one: number, other: number): string =>
      `UPDATE ledger SET seq = -1 WHERE seq = ${one};
       UPDATE ledger SET seq = ${one} WHERE seq = ${other};
       UPDATE ledger SET seq = ${other} WHERE seq = -1`;

    test.each([
      { change: "two rows in each other's place", sql: swap(5, 6), places: ["5 changed", "6 changed"] },
      { change: "two rows far apart", sql: swap(5, 17), places: ["5 changed", "17 changed"] },
      {
        change: "an edited checkpoint",
        sql: `UPDATE ledger SET result = replace(result, '"seq":9', '"seq":8') WHERE seq = 10 AND kind = 'checkpoint'`,
        places: ["10 changed", "10 checkpoint"],
      },
    ])("$change: found, and the place is named", async ({ sql, places }) => {
      const { ledger } = await openTestLedger(dataFolder(), { storeUrl, checkpointEvery: 10 });
      await appendMany(ledger, 20);
      postgres.sql(sql);
      const { problems } = await ledger.reader.verify({});
      expect(problems.map(({ seq, fault }) => `${seq} ${fault}`)).toEqual(expect.arrayContaining(places));
    });

    test("planted rows and triggers are found, and a row that a trigger swallows is not acknowledged", async () => {
      const { ledger } = await openTestLedger(dataFolder(), { storeUrl });
      await appendMany(ledger, 3);
      const listed = await ledger.reader.list({}, { limit: 10 });
      postgres.sql(
        "CREATE TABLE copied AS SELECT * FROM ledger WHERE seq = 1; UPDATE copied SET seq = -5; INSERT INTO ledger SELECT * FROM copied; DROP TABLE copied",
      );
      expect(await ledger.reader.list({}, { limit: 10 })).toEqual(listed);
      expect((await ledger.reader.verify({})).problems.map(({ detail }) => detail)).toEqual([
        "1 rows stand before row 1: no server wrote them",
      ]);
      postgres.sql(`
        CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER quiet BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION swallow()`);
      for (let times = 0; times < 2; times += 1)
        await expect(ledger.append(entry({}))).rejects.toMatchObject({ kind: "store_unavailable" });
      const { problems } = await ledger.reader.verify({});
      expect(problems.map(({ detail }) => detail)).toContain(
        "the table ledger has a trigger quiet that OwlClaw did not make",
      );
      postgres.sql("DROP TRIGGER quiet ON ledger; DROP FUNCTION swallow");
      await ledger.append(entry({}));
    });

    test("an edited cut is no cut: what it removed is missing, and its row is changed", async () => {
      const keys = loadLedgerKeys({ folder: join(dataFolder(), "keys"), create: true });
      const ledger = await openPostgresStore({ url: storeUrl, keys, checkpointEvery: 1000 });
      // A cut leaves out what is younger than the round trip to the clock of the database: a minute is longer.
      await ledger.append(
        Array.from({ length: 30 }, (_, index) => draftFromEntry(entry({ time: index * 60_000 }), createRedactor())),
      );
      await ledger.cut(10 * 60_000);
      postgres.sql("DELETE FROM ledger WHERE seq BETWEEN 11 AND 15");
      postgres.sql(`UPDATE ledger SET result = replace(result, '"to":10', '"to":15') WHERE kind = 'cut'`);
      const { problems } = await ledger.verify({});
      expect(problems.map(({ seq, fault }) => `${seq} ${fault}`)).toEqual(["1 missing", "31 changed"]);
      await ledger.close();
    });

    test("retention leaves a signed record, as with SQLite", async () => {
      const keys = loadLedgerKeys({ folder: join(dataFolder(), "keys"), create: true });
      const ledger = await openPostgresStore({ url: storeUrl, keys, checkpointEvery: 1000 });
      // A cut leaves out what is younger than the round trip to the clock of the database: a minute is longer.
      await ledger.append(
        Array.from({ length: 30 }, (_, index) => draftFromEntry(entry({ time: index * 60_000 }), createRedactor())),
      );
      expect(await ledger.cut(10 * 60_000)).toMatchObject({ from: 1, to: 10 });
      expect(await ledger.cut(10 * 60_000)).toBeUndefined();
      expect(await ledger.cut(1000 * 60_000)).toMatchObject({ from: 1, to: 30 });
      expect(await ledger.verify({})).toMatchObject({ isIntact: true, rows: 2, removed: { from: 1, to: 30 } });
      await ledger.close();
    });

    test("a database that crashes refuses calls, and everything acknowledged is there when it is back", async () => {
      const folder = dataFolder();
      const { ledger, log } = await openTestLedger(folder, { storeUrl });
      await appendMany(ledger, 20);
      await postgres.kill();
      const error: OwlError = await ledger.append(entry()).then(
        () => Promise.reject(new Error("it was written")),
        (thrown: OwlError) => thrown,
      );
      expect(error).toMatchObject({ kind: "store_unavailable", retryable: true });
      expect(ledger.isHealthy).toBe(false);
      await postgres.start();
      await appendMany(ledger, 5);
      expect(ledger.isHealthy).toBe(true);
      expect(log.filter(({ level }) => level === "error")).toHaveLength(1);
      const report = await ledger.reader.verify({});
      expect([report.isIntact, report.rows >= 25]).toEqual([true, true]);
    });

    test.each(ISOLATIONS)(
      "kill -9 of two servers under load loses no row where transactions are %s",
      async (isolation) => {
        isolateBy(isolation);
        const folder = dataFolder();
        const { ledger } = await openTestLedger(folder, { storeUrl });
        const acknowledged = await Promise.all(
          ["a", "b"].map((name) => appendUntilKilled({ folder, name, atLeast: 100, storeUrl })),
        );
        for (const [seq, call] of acknowledged.flat()) {
          expect([seq, (await ledger.reader.get(seq))?.trace_id]).toEqual([seq, call]);
        }
        expect((await ledger.reader.verify({})).problems).toEqual([]);
        await ledger.append(entry());
      },
    );

    test("an empty append writes nothing that stays, and finds a database that only reads", async () => {
      const store = await newStore();
      const change = (sql: string): string => postgres.sql(`BEGIN READ WRITE; ALTER DATABASE postgres ${sql}; COMMIT`);
      onTestFinished(() => void change("RESET default_transaction_read_only"));
      change("SET default_transaction_read_only = on");
      endLines();
      // The first may still find a connection that is about to end.
      await store.append([]).catch(() => undefined);
      await expect(store.append([])).rejects.toMatchObject({ message: expect.stringContaining("25006") });
      change("RESET default_transaction_read_only");
      endLines();
      await store.append([]).catch(() => undefined);
      expect(await store.append([])).toMatchObject({ seqs: [], head: { seq: 0 } });
      expect(postgres.sql("SELECT name FROM ledger_meta UNION ALL SELECT name FROM ledger")).toBe("chain_key_id");
    });

    test("connections that the database ends cost the queries on them, and never the server", async () => {
      const uncaught = vi.fn<(error: Error) => void>();
      process.on("uncaughtExceptionMonitor", uncaught);
      onTestFinished(() => void process.off("uncaughtExceptionMonitor", uncaught));
      const store = await newStore();
      for (let round = 0; round < 30; round += 1) {
        endLines();
        await store.append([]).catch(() => undefined);
      }
      await store.append([]);
      expect(uncaught).not.toHaveBeenCalled();
    });

    test("the commands read it too", async () => {
      const folder = dataFolder();
      const { ledger } = await openTestLedger(folder, { storeUrl });
      await appendMany(ledger, 5);
      const reader = await openReader({ config: ledgerConfig({ storeUrl }), dataFolder: folder });
      expect(await reader.verify({})).toMatchObject({ isIntact: true, rows: 5 });
      await reader.close();
    });
  },
);

function sorted(counts: readonly TimelineCount[]): readonly TimelineCount[] {
  return counts.toSorted((a, b) => a.bucket - b.bucket);
}
