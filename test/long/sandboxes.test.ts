import { readdirSync, readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test, vi } from "vitest";
import { makePlace, type Place, Server } from "../e2e/sandbox-client.ts";
import { callTool } from "../escape/http-client.ts";
import { processesOf, serverIds } from "../escape/sandbox-lab.ts";
import { keptOf, NOTHING_KEPT, NOTHING_RUNS, runningOf } from "../escape/sandbox-remains.ts";

/** Each may grow to 2 GiB, and the server promises no more than the disk has. */
const FITTING = Math.floor((statfsSync(tmpdir()).bavail * statfsSync(tmpdir()).bsize) / 2 ** 31) - 2;
const SANDBOXES = Number(process.env["OWLCLAW_LOAD_SANDBOXES"] ?? Math.min(100, FITTING));
const CALLS = Number(process.env["OWLCLAW_LOAD_CALLS"] ?? 10_000);
/** Interpreters are started and buffers have grown by then: what comes after is compared with it. */
const WARM_UP_SHARE = 0.3;
const MAX_GROWTH_MB = 80;
const SETTINGS = {
  sandbox: {
    maxPerPrincipal: SANDBOXES + 10,
    maxTotal: SANDBOXES + 10,
    maxTotalMemoryMb: 1024 * 1024,
    pool: { size: 0 },
  },
  governance: { defaults: { callsPerMinute: 1_000_000, callsPerDay: 10_000_000, concurrency: 10_000 } },
};

type Facts = Record<string, unknown>;

async function call(origin: string, name: string, args: Facts): Promise<Facts> {
  const { json, text } = await callTool(origin, name, args);
  const result = json?.result;
  if (result === undefined || result.isError === true) throw new Error(`${name}: ${text.slice(0, 500)}`);
  return result.structuredContent as Facts;
}

/** Calls number `index` of one sandbox, with an answer that no other call has. */
async function mixedCall(origin: string, session_id: string, index: number): Promise<void> {
  const token = `${session_id.slice(0, 8)}-${index}`;
  const ask = (name: string, args: Facts): Promise<Facts> => call(origin, name, { ...args, session_id });
  const kinds = [
    async () => expect(await ask("shell_exec", { command: `echo ${token}` })).toMatchObject({ stdout: `${token}\n` }),
    async () => expect(await ask("code_run", { code: `'${token}'` })).toMatchObject({ value: `'${token}'` }),
    async () => {
      await ask("file_write", { path: "f", content: token });
      expect(await ask("file_read", { path: "f" })).toMatchObject({ content: token });
    },
    async () => expect(await ask("file_list", {})).toHaveProperty("entries"),
    async () => expect(await ask("file_search", { pattern: "nothing has this" })).toHaveProperty("matches"),
  ];
  await kinds[index % kinds.length]?.();
}

interface Size {
  readonly memoryMb: number;
  readonly descriptors: number;
  readonly processes: number;
}

function sizeOf(server: Server, place: Place): Size {
  const status = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
  return {
    memoryMb: Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024),
    descriptors: readdirSync(`/proc/${server.child.pid}/fd`).length,
    processes: processesOf(serverIds(place)).length,
  };
}

async function workAll(origin: string, ids: readonly string[], range: { from: number; to: number }): Promise<void> {
  const users = ids.map(async (id, user) => {
    for (let index = range.from + user; index < range.to; index += ids.length)
      await mixedCall(origin, id, Math.floor(index / ids.length));
  });
  await Promise.all(users);
}

test(`${SANDBOXES} sandboxes at once and ${CALLS} mixed calls: no error and no leak`, async () => {
  const place = makePlace();
  const server = new Server(place, SETTINGS);
  const { origin } = new URL(await server.url());
  const startedAt = performance.now();
  const made = await Promise.all(Array.from({ length: SANDBOXES }, () => call(origin, "sandbox_create", {})));
  const createdAt = performance.now();
  const ids = made.map((facts) => String(facts["session_id"]));

  const warm = Math.floor(CALLS * WARM_UP_SHARE);
  await workAll(origin, ids, { from: 0, to: warm });
  const before = sizeOf(server, place);
  await workAll(origin, ids, { from: warm, to: CALLS });
  const endedAt = performance.now();
  const settled = await vi.waitFor(
    () => {
      const now = sizeOf(server, place);
      expect(now.processes).toBeLessThanOrEqual(before.processes);
      return now;
    },
    { timeout: 20_000, interval: 100 },
  );
  const figures = {
    createAllMs: Math.round(createdAt - startedAt),
    callsPerSecond: Math.round((CALLS * 1000) / (endedAt - createdAt)),
    before,
    after: settled,
  };
  console.log(JSON.stringify(figures));
  expect(settled.memoryMb - before.memoryMb).toBeLessThan(MAX_GROWTH_MB);
  expect(settled.descriptors).toBeLessThan(before.descriptors + 10);

  await Promise.all(ids.map((session_id) => call(origin, "sandbox_destroy", { session_id })));
  const servers = serverIds(place);
  await vi.waitFor(() => expect(runningOf(place, servers)).toEqual(NOTHING_RUNS), { timeout: 20_000 });
  expect(await server.stop()).toBe(0);
  expect(await keptOf(place, servers)).toEqual(NOTHING_KEPT);
});
