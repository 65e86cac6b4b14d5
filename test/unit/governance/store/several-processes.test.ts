import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openStoreAt } from "./open-store-at.ts";
import { counter, draft, lease, newPlace, sqliteLab, UNKNOWN } from "./store-lab.ts";

const PROCESS = fileURLToPath(new URL("./store-process.ts", import.meta.url));
const RECOVERY = fileURLToPath(new URL("./recover-process.ts", import.meta.url));
const TSX = ["--import", import.meta.resolve("tsx")];
const ENDLESS = 1e9;
const lab = sqliteLab();

interface Caller {
  readonly child: ChildProcess;
  readonly lines: AsyncIterable<string>;
}

function start(place: string, name: string, limit: number): Caller {
  const child = spawn(process.execPath, [...TSX, PROCESS, place, name, String(limit)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return { child, lines: createInterface({ input: child.stdout }) };
}

interface Calls {
  readonly admitted: string[];
  readonly settled: string[];
}

/** What a process says until it ends, by itself or killed after so many settled calls. */
async function callsOf({ child, lines }: Caller, killAfter = ENDLESS): Promise<Calls> {
  const calls: Calls = { admitted: [], settled: [] };
  for await (const line of lines) {
    const [what, call = ""] = line.split(" ");
    if (what === "admitted") calls.admitted.push(call);
    if (what === "settled") calls.settled.push(call);
    if (calls.settled.length === killAfter) child.kill("SIGKILL");
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return calls;
}

test("[004-R8.4] [004-R8.2] several processes on one file let through exactly what limits and budget allow", async () => {
  const place = newPlace();
  await (await openStoreAt(place)).close();
  const all = await Promise.all(["a", "b", "c"].map((name) => callsOf(start(place, name, 500))));
  expect(all.flatMap(({ settled }) => settled)).toHaveLength(500);
  const reader = await lab.reader(place);
  expect(await reader.verify({})).toMatchObject({ isIntact: true });
  expect(await reader.count({ outcome: "ok" })).toBe(500);
  await reader.close();
});

test("[004-R8.2] [004-R8.6] a process that is killed at any point, and its neighbour, leave each begun call with one row and one cost", async () => {
  const place = newPlace();
  const settled: string[] = [];
  const neighbour = await openStoreAt(place);
  for (const killAfter of [1, 7, 60]) {
    const both = ["x", "y"].map((name) => start(place, `${name}${killAfter}`, ENDLESS));
    const calls = await Promise.all(both.map((caller) => callsOf(caller, killAfter)));
    settled.push(...calls.flatMap((each) => each.settled));
  }
  await neighbour.recover();
  const limited = counter({ minute: ENDLESS, day: ENDLESS, atOnce: ENDLESS, budget: ENDLESS });
  const [minute, , running, money] = await neighbour.usage([limited]);
  const rows = await neighbour.list({ name: "code_run" }, { limit: 10_000 });
  const traces = new Set(rows.map((row) => row.trace_id));
  expect(traces.size).toBe(rows.length);
  expect(settled.filter((call) => !traces.has(call))).toEqual([]);
  expect(running?.used).toBe(0);
  expect([minute?.used, money?.used]).toEqual([rows.length, rows.length]);
  expect(await neighbour.verify({})).toMatchObject({ isIntact: true });
  await neighbour.close();
});

test("[004-R8.2] fifty calls at once share one budget to the last unit", async () => {
  const store = await openStoreAt(newPlace());
  const counters = [counter({ budget: 30, minute: 40 })];
  const batches = Array.from({ length: 50 }, () => store.admit([{ counters, reserveMicros: 1, draft: UNKNOWN }]));
  const admitted = (await Promise.all(batches)).flat().flatMap((each) => (each.ok ? [each.lease.call] : []));
  expect(admitted).toHaveLength(30);
  await Promise.all(admitted.map((call) => store.settle([{ call, costMicros: 1, draft: draft() }])));
  expect(await store.usage(counters)).toMatchObject([{ used: 30 }, { used: 30 }]);
  await store.close();
});

test.skipIf(process.getuid?.() !== 0)(
  "a begun call of a living process is not settled by a server of another container, which sees no process of this one",
  async () => {
    const place = newPlace();
    const store = await openStoreAt(place);
    const { call } = await lease(store, counter({ atOnce: 1 }), { draft: UNKNOWN });
    const command = ["--pid", "--fork", "--mount-proc", process.execPath, ...TSX, RECOVERY, place];
    expect((await promisify(execFile)("unshare", command)).stdout).toBe("0\n");
    expect(await store.settle([{ call, draft: draft() }])).toMatchObject({ seqs: [1] });
    await store.close();
  },
);
