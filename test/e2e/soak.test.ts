import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { settled } from "../../bench/process-tree.ts";
import { type SandboxServer, startSandboxServer } from "../../bench/sandbox-server.ts";
import { type Size, sizeOf, startMixedLoad } from "../../bench/soak-mixed.ts";

// How long calls take, and what they cost, is for `npm run bench -- --soak-mixed 30 --check`: other tests run beside this one.

const WARM_UP_MS = 60_000;
const LOAD_MS = 5 * 60_000;
/** Of what is left when all garbage is collected; the whole process grows and shrinks with what V8 expects to need. */
const MAX_GROWTH_MB = 5;
/** Garbage is collected often. */
const NODE_FLAGS = ["--trace-gc", "--max-old-space-size=64", "--max-semi-space-size=2"];
const REST = { timeout: 60_000, interval: 500 };
const QUIET_MS = 3000;

async function load({ process: { origin } }: SandboxServer, durationMs: number): Promise<number> {
  const clients = startMixedLoad(origin);
  clients.failed.catch(() => undefined);
  await Promise.race([delay(durationMs), clients.failed]);
  await clients.stop();
  return clients.latencies.length;
}

async function atRest({ process: server }: SandboxServer): Promise<Size> {
  await settled(server.pid, QUIET_MS);
  return await sizeOf(server);
}

test("after five minutes of handlers, code, commands, files and new sandboxes a server is as small as before", async () => {
  const server = await startSandboxServer(2, {}, NODE_FLAGS);
  onTestFinished(() => server.stop());
  await load(server, WARM_UP_MS);
  const { rssMegabytes, ...before } = await atRest(server);
  const heapMegabytes = server.process.liveHeapMegabytes;
  const calls = await load(server, LOAD_MS);
  await vi.waitFor(async () => expect(await atRest(server)).toMatchObject(before), REST);
  const grown = server.process.liveHeapMegabytes - heapMegabytes;
  const all = (await sizeOf(server.process)).rssMegabytes - rssMegabytes;
  console.log(`${calls} calls; heap ${grown.toFixed(1)} MB more, process ${all.toFixed(0)} MB more`);
  expect(grown).toBeLessThan(MAX_GROWTH_MB);
}, 900_000);
