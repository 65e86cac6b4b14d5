import { expect, test } from "vitest";
import type { LedgerEntry } from "../../../../src/governance/ledger/ledger.ts";
import type { Recorded } from "../../../../src/governance/ledger/settlement-queue.ts";
import { RefusalCounter } from "../../../../src/governance/ledger/refusal-counter.ts";
import { entry } from "./ledger-entry.ts";
import { REFUSED } from "./ledger-fixture.ts";

function counter() {
  const clock = { now: 0, isBroken: false };
  const written: string[] = [];
  const counts = new Map<string, number>();
  const write = async (line: string): Promise<Recorded> => {
    if (clock.isBroken) throw new Error("the disk is full");
    return { seq: written.push(line), spendings: [] };
  };
  const refusals = new RefusalCounter({
    windowMs: 60_000,
    now: () => clock.now,
    write: (refusal) => write(`first ${refusal.principal} ${refusal.rule}`),
    writeCount: ({ entry: { principal, rule, name }, count }) => {
      counts.set(name, count);
      return write(`${count} more ${principal} ${rule}`);
    },
  });
  const refuse = (changes: Partial<LedgerEntry> = {}) => refusals.add(entry({ ...REFUSED, ...changes }));
  return { clock, written, counts, refusals, refuse };
}

/** Until no other call gets a row of its own. */
async function fillRows(refuse: (changes: Partial<LedgerEntry>) => Promise<unknown>): Promise<void> {
  for (let call = 0; call < 10; call += 1) await refuse({ args: { call } });
}

test("a window that is over closes with its count, and the next refusal is a row of its own", async () => {
  const { clock, written, refusals, refuse } = counter();
  for (let call = 0; call < 5; call += 1) await refuse();
  clock.now = 59_999;
  await refuse();
  await refusals.flush("over");
  expect(written).toEqual(["first ada callsPerMinute"]);
  clock.now = 60_000;
  await refuse();
  await refusals.flush("over");
  expect(written).toEqual(["first ada callsPerMinute", "first ada callsPerMinute", "5 more ada callsPerMinute"]);
});

test("a refusal that was not written does not stand for those after it", async () => {
  const { clock, written, refuse } = counter();
  clock.isBroken = true;
  await expect(refuse()).rejects.toThrow("full");
  clock.isBroken = false;
  await refuse();
  expect(written).toEqual(["first ada callsPerMinute"]);
});

test("a count that could not be written is kept and tried again", async () => {
  const { clock, written, refusals, refuse } = counter();
  await refuse();
  await refuse();
  clock.isBroken = true;
  await expect(refusals.flush("all")).rejects.toThrow("full");
  clock.isBroken = false;
  await refusals.flush("all");
  expect(written).toEqual(["first ada callsPerMinute", "1 more ada callsPerMinute"]);
});

test("many principals at once do not fill the memory: the oldest closes early", async () => {
  const { written, refusals, refuse } = counter();
  await refuse({ principal: "first" });
  await refuse({ principal: "first" });
  for (let index = 0; index < 10_000; index += 1) await refuse({ principal: `p${index}` });
  await refusals.flush("over");
  expect(written.at(-1)).toBe("1 more first callsPerMinute");
});

test("those that repeat are counted by what was refused", async () => {
  const { counts, refusals, refuse } = counter();
  await refuse({ name: "a" });
  for (let call = 0; call < 500; call += 1) await refuse({ name: "b" });
  await refuse({ name: "a" });
  await refusals.flush("all");
  expect(Object.fromEntries(counts)).toEqual({ a: 1, b: 499 });
});

test("calls that differ in their arguments get a row each, up to ten, and are counted from then on", async () => {
  const { counts, written, refusals, refuse } = counter();
  for (let round = 0; round < 3; round += 1)
    for (let call = 0; call < 12; call += 1) await refuse({ args: { path: `file-${call}` } });
  expect(written).toHaveLength(10);
  await refusals.flush("all");
  expect([...counts.values()]).toEqual([26]);
});

test("names that are longer than the ledger keeps are not kept in memory either", async () => {
  const { counts, refusals, refuse } = counter();
  await fillRows(refuse);
  for (const length of [512, 513, 1_000_000]) await refuse({ name: "n".repeat(length) });
  await refusals.flush("all");
  expect([...counts].map(([name, count]) => [name.length, count])).toEqual([
    [512, 1],
    ["(others)".length, 2],
  ]);
});

test("a flood under ever new names writes no row for each of them", async () => {
  const { counts, written, refusals, refuse } = counter();
  for (let call = 0; call < 1010; call += 1) await refuse({ name: `thought-up-${call}` });
  await refuse({ name: "thought-up-11" });
  await refusals.flush("all");
  expect(written).toHaveLength(10 + 20 + 1);
  expect([counts.get("thought-up-11"), counts.get("(others)")]).toEqual([2, 980]);
});

test("a name is counted without the id that opens a sandbox", async () => {
  const { counts, refusals, refuse } = counter();
  await fillRows(refuse);
  for (const id of ["second-id", "third-id"]) await refuse({ name: `sandbox://${id}/file`, secrets: [id] });
  await refusals.flush("all");
  expect(Object.fromEntries(counts)).toEqual({ "sandbox://[redacted]/file": 2 });
});
