import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { settled } from "../../bench/process-tree.ts";
import { type SandboxServer, startSandboxServer } from "../../bench/sandbox-server.ts";
import { loopDelayMs, type Size, sizeOf, startMixedLoad } from "../../bench/soak-mixed.ts";
import { median } from "../../bench/statistics.ts";

// How long calls take, and what they cost, is for `npm run bench -- --soak-mixed 30 --check`: other tests run beside this one.

// npm run test:long takes five minutes, CI one.
const isLong = process.env["OWLCLAW_TEST_LONG"] === "1";
const WARM_UP_MS = isLong ? 60_000 : 20_000;
const LOAD_MS = isLong ? 5 * 60_000 : 60_000;
/** Of what is left when all garbage is collected; the whole process grows and shrinks with what V8 expects to need. */
const MAX_GROWTH_MB = 5;
/** Garbage is collected often. */
const NODE_FLAGS = ["--trace-gc", "--max-old-space-size=64", "--max-semi-space-size=2"];
const REST = { timeout: 60_000, interval: 500 };
const QUIET_MS = 3000;
const LOOKS = 30;
/** What a loop that is late because others use the processors may differ by; one that grows with what was done has no end. */
const MAX_LATER_MS = 25;

interface Loaded {
  readonly calls: number;
  /** How late the event loop was at the median, one look after the other. */
  readonly delaysMs: readonly number[];
}

async function load({ process: { origin } }: SandboxServer, durationMs: number): Promise<Loaded> {
  const clients = startMixedLoad(origin);
  clients.failed.catch(() => undefined);
  const delaysMs: number[] = [];
  await loopDelayMs(origin, "p50");
  while (delaysMs.length < LOOKS) {
    await Promise.race([delay(durationMs / LOOKS), clients.failed]);
    delaysMs.push(await loopDelayMs(origin, "p50"));
  }
  await clients.stop();
  return { calls: clients.latencies.length, delaysMs };
}

async function atRest({ process: server }: SandboxServer): Promise<Size> {
  await settled(server.pid, QUIET_MS);
  return await sizeOf(server);
}

test("after minutes of handlers, code, commands, files and new sandboxes a server is as small as before, and its event loop as quick", async () => {
  const server = await startSandboxServer(2, {}, NODE_FLAGS);
  onTestFinished(() => server.stop());
  await load(server, WARM_UP_MS);
  const { rssMegabytes, ...before } = await atRest(server);
  const heapMegabytes = server.process.liveHeapMegabytes;
  const { calls, delaysMs } = await load(server, LOAD_MS);
  await vi.waitFor(async () => expect(await atRest(server)).toMatchObject(before), REST);
  const grown = server.process.liveHeapMegabytes - heapMegabytes;
  const all = (await sizeOf(server.process)).rssMegabytes - rssMegabytes;
  const early = median(delaysMs.slice(0, LOOKS / 2));
  const late = median(delaysMs.slice(LOOKS / 2));
  const loop = `loop ${early.toFixed(1)} ms late, then ${late.toFixed(1)} ms`;
  console.log(`${calls} calls; heap ${grown.toFixed(1)} MB more, process ${all.toFixed(0)} MB more; ${loop}`);
  expect(grown).toBeLessThan(MAX_GROWTH_MB);
  expect(late).toBeLessThan(2 * early + MAX_LATER_MS);
}, 900_000);
