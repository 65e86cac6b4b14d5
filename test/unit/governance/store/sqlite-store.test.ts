import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import Database from "libsql";
import { join } from "node:path";
import { storeContract } from "./store-contract.ts";
import { admit, counter, HandClock, lease, passed, settle, sqliteLab, UNKNOWN, draft, rowsOf } from "./store-lab.ts";
import { callsInLivesHeldAgainstModel } from "./store-model.ts";

const lab = sqliteLab();

storeContract(lab);

test("[004-R8.4] two servers on one file never let through what the model forbids, nor refuse what it allows", async () => {
  // A run in which nothing passes would prove nothing.
  expect(await callsInLivesHeldAgainstModel(lab, { numRuns: 40, countsLater: true })).toBeGreaterThan(5);
});

test("[004-R8.4] a server that has the file for itself holds to the model as well", async () => {
  expect(await callsInLivesHeldAgainstModel(lab, { numRuns: 20, servers: 1, countsLater: true })).toBeGreaterThan(5);
});

test("[004-R8.4] calls of a minute count once more in full after a restart of the machine", async () => {
  const place = lab.newPlace();
  const clock = new HandClock("2026-11-15T12:00:00Z");
  const limited = counter({ minute: 2 });
  const first = await lab.open({ place, clock });
  expect(await passed(first, limited, 2)).toBe(2);
  await first.close();
  clock.pass(30_000);
  clock.bootId = "second";
  clock.steady = 5;
  const second = await lab.open({ place, clock });
  expect(await passed(second, limited, 1)).toBe(0);
  clock.pass(60_000);
  expect(await passed(second, limited, 5)).toBe(2);
  await second.close();
});

test("a start that the server's key did not seal puts nothing into the ledger, and keeps no other call from being settled", async () => {
  const place = lab.newPlace();
  const killed = await lab.open({ place });
  const limited = counter({ atOnce: 5, budget: 100 });
  await lease(killed, limited, { reserve: 7, draft: UNKNOWN });
  const file = new Database(join(place, "ledger.db"));
  file.exec("INSERT INTO call_starts SELECT call + 1, holds, day, micros, draft, mac FROM call_starts");
  file.exec("INSERT INTO call_starts SELECT call + 2, holds, day, 99, draft, mac FROM call_starts LIMIT 1");
  file.exec("INSERT INTO call_starts SELECT call + 4, 'no JSON', day, micros, draft, mac FROM call_starts LIMIT 1");
  file.close();
  await lab.kill(killed);
  const next = await lab.open({ place });
  await next.recover();
  expect((await rowsOf(next, "unknown")).map((row) => row.cost_micros)).toEqual([7]);
  expect(await next.usage([limited])).toMatchObject([{ used: 0 }, { used: 7 }]);
  await next.close();
});

test("old calls and processes leave nothing behind", async () => {
  const place = lab.newPlace();
  const clock = new HandClock("2026-11-15T12:00:00Z");
  const limited = counter({ minute: 100, atOnce: 100 });
  const store = await lab.open({ place, clock });
  for (let call = 0; call < 50; call += 1) {
    await settle(store, await lease(store, limited));
    clock.pass(5000);
  }
  const file = new Database(join(place, "ledger.db"));
  const countOf = (table: string): number => file.prepare(`SELECT 1 FROM ${table}`).all([]).length;
  expect(countOf("call_times")).toBeLessThanOrEqual(14);
  await store.close();
  expect([countOf("call_starts"), countOf("call_servers")]).toEqual([0, 0]);
  clock.pass(60_000);
  const next = await lab.open({ place, clock });
  expect([countOf("call_times"), countOf("call_places")]).toEqual([0, 0]);
  file.close();
  await next.close();
});

test("a locked file refuses, and what is refused leaves nothing", async () => {
  const place = lab.newPlace();
  const store = await lab.open({ place });
  const limited = counter({ budget: 100, atOnce: 5 });
  const { call } = await lease(store, limited, { reserve: 40, draft: UNKNOWN });
  const blocker = new Database(join(place, "ledger.db"));
  blocker.exec("BEGIN IMMEDIATE");
  const settlement = { call, costMicros: 30, draft: draft() };
  const [settled, admitted] = await Promise.allSettled([
    store.settle([settlement]),
    admit(store, limited, { reserve: 1 }),
  ]);
  const refused = { status: "rejected", reason: { kind: "store_unavailable", retryable: true } };
  expect([settled, admitted]).toMatchObject([refused, refused]);
  blocker.exec("ROLLBACK");
  blocker.close();
  expect(await store.usage([limited])).toMatchObject([{ used: 1 }, { used: 40 }]);
  expect(await store.settle([settlement])).toMatchObject({ seqs: [1] });
  expect(await store.usage([limited])).toMatchObject([{ used: 0 }, { used: 30 }]);
  await store.close();
});

test("budgets and days that an earlier version has counted in limits.db go on, once", async () => {
  const place = lab.newPlace();
  await (await lab.open({ place })).close();
  const clock = new HandClock("2026-11-15T12:00:00Z");
  const oldLimits = join(place, "limits.db");
  const file = new Database(oldLimits);
  file.exec(
    "CREATE TABLE days (key TEXT, day TEXT, n INTEGER); CREATE TABLE spent (key TEXT, month TEXT, micros INTEGER)",
  );
  file.exec("INSERT INTO days VALUES ('ada', '2026-11-15', 4); INSERT INTO spent VALUES ('ada', '2026-11', 70)");
  file.close();
  for (const start of [1, 2]) {
    const store = await lab.open({ place, clock, oldLimits });
    expect([start, await store.usage([counter({ day: 10, budget: 100 })])]).toMatchObject([
      start,
      [{ used: 4 }, { used: 70 }],
    ]);
    await store.close();
  }
});

test.skipIf(process.getuid?.() !== 0)(
  "a full disk refuses calls, and admits and settles them when there is room again",
  async () => {
    const disk = join(lab.newPlace(), "disk");
    mkdirSync(disk, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "owlclaw-test", disk]);
    onTestFinished(() => void execFileSync("umount", ["-l", disk]));
    const store = await lab.open({ place: disk });
    const limited = counter({ minute: 1e6, atOnce: 1e6, budget: 1e6 });
    const { call } = await lease(store, limited, { reserve: 5, draft: UNKNOWN });
    const filler = join(disk, "filler");
    expect(() => writeFileSync(filler, Buffer.alloc(8 * 1024 * 1024))).toThrow("ENOSPC");
    let admitted = 1;
    const fill = async (): Promise<unknown> => {
      for (;;) {
        await lease(store, limited, { reserve: 5, draft: UNKNOWN });
        admitted += 1;
      }
    };
    const refused = {
      kind: "store_unavailable",
      retryable: true,
      message: expect.stringContaining("the disk is full"),
    };
    await expect(fill()).rejects.toMatchObject(refused);
    await expect(store.settle([{ call, costMicros: 5, draft: draft() }])).rejects.toMatchObject(refused);
    rmSync(filler);
    expect(await store.settle([{ call, costMicros: 5, draft: draft() }])).toMatchObject({ seqs: [1] });
    await lease(store, limited, { reserve: 5, draft: UNKNOWN });
    expect(await store.usage([limited])).toMatchObject([
      { used: admitted + 1 },
      { used: admitted },
      { used: 5 * (admitted + 1) },
    ]);
    expect(await store.verify({})).toMatchObject({ isIntact: true, rows: 1 });
    await store.close();
  },
);
