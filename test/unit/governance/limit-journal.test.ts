import { execFileSync } from "node:child_process";
import fs, {
  appendFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, dirname } from "node:path";
import Database from "libsql";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { SqliteLimitStore } from "../../../src/governance/limits/sqlite-limit-store.ts";
import { admit, lease } from "./limit-store-contract.ts";
import { counter, HandClock, sqliteLab, type TestStore } from "./limits.ts";

const NOON = "2026-11-15T12:00:00Z";
const SAVE_MS = 100;
const FROZEN_MS = 1000;
const lab = sqliteLab();
const limited = counter({ minute: 1000, day: 1000, atOnce: 10, budget: 1000 });

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

async function calls(store: TestStore, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) await store.settle(await lease(store, limited, 1), 3);
}

/** Of the minute, of the day, at a time, and micro-units of money. */
async function usedAt(store: TestStore): Promise<number[]> {
  return (await store.usage([limited])).map(({ used }) => used);
}

/** After so many calls that have ended. */
function used(times: number): number[] {
  return [times, times, 0, 3 * times];
}

function journalsAt(place: string): string[] {
  return readdirSync(dirname(place)).filter((name) => name.startsWith(`${basename(place)}.`));
}

/** Nobody ran for so long: the limit of frozen processes goes by the machine's clock and not by the one of the tests. */
function freeze(): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + FROZEN_MS);
}

interface Life {
  readonly place: string;
  readonly clock: HandClock;
  readonly store: SqliteLimitStore;
  readonly journal: string;
}

/** A server whose last calls are in its journal alone. */
async function life(times: number): Promise<Life> {
  const place = lab.newPlace();
  const clock = new HandClock(NOON);
  const store = lab.open({ place, clock });
  const journal = `${place}.counts-${store.processId}`;
  await calls(store, times);
  expect(readFileSync(journal, "utf8")).not.toBe("");
  return { place, clock, store, journal };
}

async function usedAfter({ place, clock }: Life): Promise<number[]> {
  const next = lab.open({ place, clock });
  const all = await usedAt(next);
  await next.close();
  return all;
}

describe("a process that was killed", () => {
  test("has every answered call counted once, and leaves nothing behind", async () => {
    const killed = await life(5);
    await lab.kill(killed.store);
    expect(await usedAfter(killed)).toEqual(used(5));
    expect(await usedAfter(killed)).toEqual(used(5));
    expect(journalsAt(killed.place)).toEqual([]);
  });

  test("with its calls in the tables and in the journal still has them counted once", async () => {
    const killed = await life(5);
    const lines = readFileSync(killed.journal);
    killed.clock.pass(SAVE_MS);
    await calls(killed.store, 1);
    expect(readFileSync(killed.journal, "utf8")).toBe("");
    await lab.kill(killed.store);
    writeFileSync(killed.journal, lines);
    expect(await usedAfter(killed)).toEqual(used(6));
  });

  test("is taken over by a neighbour that has been there before", async () => {
    const killed = await life(5);
    const lines = readFileSync(killed.journal);
    truncateSync(killed.journal);
    const { place, clock } = killed;
    const neighbour = lab.open({ place, clock });
    writeFileSync(killed.journal, lines);
    await lab.kill(killed.store);
    expect(await usedAt(neighbour)).toEqual(used(5));
    expect(journalsAt(place)).toEqual([`${basename(place)}.counts-${neighbour.processId}`]);
    await neighbour.close();
  });

  test.each([5, 5_000_000])("before a restart of the machine counts as if it came now, at %s", async (steady) => {
    const killed = await life(5);
    await lab.kill(killed.store);
    killed.clock.bootId = "second";
    killed.clock.steady = steady;
    expect(await usedAfter(killed)).toEqual(used(5));
    killed.clock.pass(60_000);
    const next = lab.open(killed);
    expect(await usedAt(next)).toEqual([0, 5, 0, 15]);
    await next.close();
  });

  test("has its days and months kept apart", async () => {
    const place = lab.newPlace();
    const clock = new HandClock("2026-11-30T23:59:59Z");
    const store = lab.open({ place, clock });
    await calls(store, 2);
    const long = await lease(store, limited, 1);
    clock.wall += 2000;
    await calls(store, 3);
    await store.settle(long, 100);
    await lab.kill(store);
    const next = lab.open({ place, clock });
    expect(await usedAt(next)).toEqual([6, 3, 0, 9]);
    clock.wall -= 2000;
    // The clock was set back: what later days and months count is counted too.
    expect(await usedAt(next)).toEqual([6, 6, 0, 115]);
    clock.wall += 2 * 86_400_000;
    expect(await usedAt(next)).toEqual([6, 0, 0, 9]);
    await next.close();
  });
});

describe("a process that was frozen", () => {
  test("loses its claim, and what it had on file counts", async () => {
    const frozen = await life(5);
    const lines = readFileSync(frozen.journal);
    truncateSync(frozen.journal);
    const { place, clock } = frozen;
    const neighbour = lab.open({ place, clock });
    // Lives, and says nothing any more.
    frozen.store.abandon();
    writeFileSync(frozen.journal, lines);
    expect(await usedAt(neighbour)).toEqual(used(5));
    await neighbour.close();
  });

  test("wakes, and nothing counts twice and nothing is lost", async () => {
    const { place, clock, store } = await life(5);
    const running = await lease(store, limited, 1);
    const neighbour = lab.open({ place, clock });
    const file = new Database(place);
    file.exec("DELETE FROM held WHERE key = ''");
    file.close();
    freeze();
    await store.settle(running, 3);
    expect(await usedAt(neighbour)).toEqual(used(6));
    await calls(store, 1);
    expect(await usedAt(neighbour)).toEqual(used(7));
    await calls(neighbour, 1);
    expect(await usedAt(store)).toEqual(used(8));
    await Promise.all([store.close(), neighbour.close()]);
    expect(journalsAt(place)).toEqual([]);
  });

  test("and taken for dead wakes, and counts on", async () => {
    const asleep = await life(5);
    const { place, clock, store } = asleep;
    lab.bury(store);
    const neighbour = lab.open({ place, clock });
    freeze();
    expect(journalsAt(place)).toEqual([]);
    await calls(store, 1);
    expect(await usedAt(neighbour)).toEqual(used(6));
    await neighbour.close();
    // By itself again, it has a journal again.
    await calls(store, 5);
    expect(readFileSync(asleep.journal, "utf8")).not.toBe("");
    await lab.kill(store);
    expect(await usedAfter(asleep)).toEqual(used(11));
  });
});

describe("a process that was taken for dead and wakes", () => {
  test("waits for whoever counts in memory now, and lets through what is left", async () => {
    const { place, clock, store } = await life(3);
    lab.bury(store);
    const neighbour = lab.open({ place, clock });
    await calls(neighbour, 6);
    expect(readFileSync(`${place}.counts-${neighbour.processId}`, "utf8")).not.toBe("");
    freeze();
    const ten = counter({ minute: 1000, day: 10, atOnce: 10, budget: 1000 });
    const admissions = [await admit(store, ten), await admit(store, ten), await admit(store, ten)];
    expect(admissions.map(({ ok }) => ok)).toEqual([true, false, false]);
    expect(await usedAt(neighbour)).toEqual([10, 10, 1, 27]);
    await Promise.all([store.close(), neighbour.close()]);
  });

  test("has what it takes then given back when it dies", async () => {
    const { place, clock, store } = await life(3);
    lab.bury(store);
    const neighbour = lab.open({ place, clock });
    freeze();
    await lease(store, limited, 500);
    expect(await usedAt(neighbour)).toEqual([4, 4, 1, 509]);
    store.abandon();
    const next = lab.open({ place, clock });
    expect(await usedAt(next)).toEqual([4, 4, 0, 9]);
    await Promise.all([neighbour.close(), next.close()]);
  });

  test("tells again what its calls hold that still run", async () => {
    const { place, clock, store } = await life(3);
    const running = await lease(store, limited, 900);
    await running.counted;
    lab.bury(store);
    const neighbour = lab.open({ place, clock });
    expect(await usedAt(neighbour)).toEqual([4, 4, 0, 9]);
    freeze();
    await lease(store, counter({ key: "bob", day: 9 }));
    expect(await usedAt(neighbour)).toEqual([4, 4, 1, 909]);
    await Promise.all([store.close(), neighbour.close()]);
  });
});

test("a process that was taken for dead by one that has gone has a journal again", async () => {
  const asleep = await life(5);
  const { place, clock, store } = asleep;
  lab.bury(store);
  await lab.open({ place, clock }).close();
  freeze();
  await calls(store, 5);
  expect(readFileSync(asleep.journal, "utf8")).not.toBe("");
  await lab.kill(store);
  expect(await usedAfter(asleep)).toEqual(used(10));
});

describe("a journal", () => {
  test("is for its owner alone, and goes with it", async () => {
    const { place, store, journal } = await life(3);
    expect(lstatSync(journal).mode & 0o777).toBe(0o600);
    await store.close();
    expect(journalsAt(place)).toEqual([]);
    const file = new Database(place);
    expect(file.prepare("SELECT name FROM facts").raw().all()).toEqual([["boot"]]);
    file.close();
  });

  test("stays small", async () => {
    const { clock, store, journal } = await life(3);
    for (let round = 0; round < 20; round += 1) {
      clock.pass(SAVE_MS / 2);
      await calls(store, 1);
    }
    expect(readFileSync(journal, "utf8").split("\n").length).toBeLessThan(5);
    await store.close();
  });

  test.each([
    ["torn", (line: string) => line.slice(0, -2)],
    ["torn in the middle of the file", (line: string) => `${line.slice(0, -2)}\n${line}`],
    ["that was there before", (line: string) => line.replace(/"number":\d+/, '"number":1')],
    ["with what is no number", (line: string) => line.replace(/"n":1/, '"n":"1"')],
    ["with less than nothing", (line: string) => line.replace(/"micros":3/, '"micros":-3')],
  ])("ends at a line %s", async (_name, spoil) => {
    const killed = await life(5);
    await lab.kill(killed.store);
    const line = readFileSync(killed.journal, "utf8").trimEnd().split("\n").at(-1) ?? "";
    const [next, last] = [500, 1000].map((number) => line.replace(/"number":\d+/, `"number":${number}`));
    appendFileSync(killed.journal, `${spoil(next ?? "")}\n${last}\n`);
    expect(await usedAfter(killed)).toEqual(used(5));
  });

  test("of the future counts for a minute and no longer", async () => {
    const killed = await life(5);
    await lab.kill(killed.store);
    writeFileSync(killed.journal, readFileSync(killed.journal, "utf8").replaceAll(/"at":\d+/g, '"at":999999999'));
    expect(await usedAfter(killed)).toEqual(used(5));
    killed.clock.pass(60_000);
    const next = lab.open(killed);
    expect(await usedAt(next)).toEqual([0, 5, 0, 15]);
    await next.close();
  });

  test.each<[string, (path: string) => void]>([
    ["garbage", (path) => writeFileSync(path, Buffer.from([0, 255, 10, 123, 10, 0, 200]))],
    ["nothing but brackets", (path) => writeFileSync(path, `${"[".repeat(5_000_000)}\n`)],
    ["endless", (path) => truncateSync(path, 2 ** 40)],
    ["a pipe", (path) => replace(path, () => execFileSync("mkfifo", [path]))],
    ["a folder", (path) => replace(path, () => mkdirSync(path))],
    ["a link to a good one", (path) => replace(path, () => symlinkSync(withLine(path), path))],
  ])("of somebody dead that is %s is nobody's", async (_name, spoil) => {
    const killed = await life(3);
    killed.clock.pass(SAVE_MS);
    await calls(killed.store, 1);
    await lab.kill(killed.store);
    spoil(killed.journal);
    expect(await usedAfter(killed)).toEqual(used(4));
  });

  test("is no link to somewhere else, whoever has put it there", async () => {
    const place = lab.newPlace();
    const store = lab.open({ place });
    const victim = `${place}-victim`;
    writeFileSync(victim, "precious");
    const journal = `${place}.counts-${store.processId}`;
    symlinkSync(victim, journal);
    await calls(store, 3);
    expect(lstatSync(journal).isFile()).toBe(true);
    await store.close();
    expect(readFileSync(victim, "utf8")).toBe("precious");
  });

  test("that cannot be made is done without", async () => {
    const place = lab.newPlace();
    const clock = new HandClock(NOON);
    const store = lab.open({ place, clock });
    mkdirSync(`${place}.counts-${store.processId}`);
    await calls(store, 5);
    await lab.kill(store);
    const next = lab.open({ place, clock });
    expect(await usedAt(next)).toEqual(used(5));
    await next.close();
  });

  test("of nobody is removed by whoever comes next", async () => {
    const place = lab.newPlace();
    await lab.open({ place }).close();
    writeFileSync(`${place}.counts-12345`, "");
    writeFileSync(`${place}.counts-mine`, "");
    const next = lab.open({ place });
    expect(journalsAt(place)).toEqual([`${basename(place)}.counts-mine`]);
    await next.close();
  });

  test.each([
    ["at all", 0],
    ["whole", 7],
  ])("that cannot be written %s refuses calls, and recovers", async (_name, bytesWritten) => {
    const full = await life(3);
    const { store, journal } = full;
    const write = fs.writeSync;
    const spy = vi.spyOn(fs, "writeSync").mockImplementation((file, bytes) => {
      if (bytesWritten === 0) throw new Error("ENOSPC: no space left on device, write");
      return write(file, bytes.slice(0, bytesWritten));
    });
    syncBuiltinESMExports();
    const cost = store.settle(await lease(store, limited, 1), 3);
    await expect(cost).rejects.toMatchObject({ kind: "store_unavailable" });
    expect(spy).toHaveBeenCalledOnce();
    spy.mockRestore();
    syncBuiltinESMExports();
    // Everything is in the tables before anything else is believed.
    await calls(store, 1);
    expect(await usedAt(store)).toEqual(used(5));
    await calls(store, 2);
    expect(readFileSync(journal, "utf8").split("\n")).toHaveLength(3);
    await lab.kill(store);
    expect(await usedAfter(full)).toEqual(used(7));
  });
});

function replace(path: string, make: () => void): void {
  rmSync(path);
  make();
}

function withLine(path: string): string {
  const other = `${path}-other`;
  const calls = [{ key: "ada", day: "2026-11-15", at: 1_000_000, n: 100 }];
  writeFileSync(other, `${JSON.stringify({ number: 1000, calls, spent: [] })}\n`);
  return other;
}
