import { duplexPair } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { ServerConnection } from "../../../guest/connection.ts";
import { GuestClient } from "../../../src/sandbox/guest-client.ts";
import type { ConnectedInstance } from "../../../src/sandbox/instance-starter.ts";
import { Pool, type WarmInstance, type PoolOptions } from "../../../src/sandbox/pool.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { PLAN } from "./instance-plan.ts";

/** An instance whose guest knows how to warm up and nothing else. */
function makeInstance(warmed: unknown[]): ConnectedInstance {
  const [host, inside] = duplexPair();
  new ServerConnection(inside, inside).serve({
    "code.warm": (params) => {
      warmed.push(params);
      return {};
    },
  });
  const client = new GuestClient({ stream: host, maxFrameBytes: 10_000, logger: SILENT_LOGGER });
  return {
    client,
    ended: client.lost,
    get isOver() {
      return client.isLost;
    },
    bytesMoved: 0,
    usage: () => Promise.resolve({ memoryBytes: 0, cpuMs: 0, pids: 0 }),
    close: async () => client.fail("closed"),
  };
}

interface Fixture {
  readonly pool: Pool;
  readonly warmed: unknown[];
  readonly discarded: WarmInstance[];
}

function makePool(options: Partial<PoolOptions> = {}): Fixture {
  const warmed: unknown[] = [];
  const discarded: WarmInstance[] = [];
  const pool = new Pool({
    size: 2,
    templates: ["python", "node"],
    template: "python",
    flavor: "small",
    preload: ["numpy"],
    logger: SILENT_LOGGER,
    open: async (template) => ({
      plan: { ...PLAN, template, language: template === "node" ? "node" : "python" },
      instance: makeInstance(warmed),
    }),
    discard: async (pooled) => {
      discarded.push(pooled);
      await pooled.instance.close();
    },
    hasCapacity: () => true,
    ...options,
  });
  onTestFinished(() => pool.close());
  return { pool, warmed, discarded };
}

test("it fills up to its size, each with its interpreter warm and the modules imported", async () => {
  const { pool, warmed } = makePool();
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(2), 20_000);
  expect(warmed).toEqual([
    { language: "python", preload: ["numpy"] },
    { language: "python", preload: ["numpy"] },
  ]);
  expect(pool.waiting("node")).toBe(0);
});

test("a claim is answered at once and replaced; demand raises the number, up to four times", async () => {
  const { pool } = makePool();
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(2), 20_000);
  for (let claims = 0; claims < 12; claims += 1) pool.claim("python");
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(8), 20_000);
});

test("another template is kept warm while it is asked for", async () => {
  const { pool, warmed } = makePool();
  expect(pool.claim("node")).toBeUndefined();
  await vi.waitFor(() => expect(pool.waiting("node")).toBe(1), 20_000);
  expect(warmed).toContainEqual({ language: "node", preload: [] });
});

test("without room nothing is started", async () => {
  const { pool } = makePool({ hasCapacity: () => false });
  pool.refill();
  expect(pool.count).toBe(0);
});

test("one that dies while it waits is removed and replaced", async () => {
  const opened: ConnectedInstance[] = [];
  const { pool, discarded } = makePool({
    size: 1,
    open: async (template) => {
      const instance = makeInstance([]);
      opened.push(instance);
      return { plan: { ...PLAN, template }, instance };
    },
  });
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(1), 20_000);
  opened[0]?.client.fail("gone");
  await vi.waitFor(() => expect(opened).toHaveLength(2), 20_000);
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(1), 20_000);
  expect(discarded.map(({ instance }) => instance)).toEqual([opened[0]]);
  expect(pool.claim("python")?.instance).toBe(opened[1]);
});

test("closing stops everything that waits, and what is on its way", async () => {
  const { pool, discarded } = makePool();
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(2), 20_000);
  pool.claim("python");
  await pool.close();
  expect(discarded.length).toBeGreaterThanOrEqual(1);
  expect(pool.count).toBe(0);
});

test("one that has waited for too long is replaced; one that somebody has stays", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { pool, discarded } = makePool({ size: 1, maxWaitMs: () => 1_800_000 });
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(1), 20_000);
  const claimed = pool.claim("python");
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(1), 20_000);
  await vi.advanceTimersByTimeAsync(1_700_000);
  expect(discarded).toEqual([]);
  await vi.advanceTimersByTimeAsync(100_000);
  expect(discarded).toHaveLength(1);
  expect(discarded[0]).not.toBe(claimed);
  expect(claimed?.instance.isOver).toBe(false);
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(1), 20_000);
  expect(pool.claim("python")?.instance.isOver).toBe(false);
});

test("closing waits until one that died is removed", async () => {
  const opened: ConnectedInstance[] = [];
  let isRemoved = false;
  let remove: () => void = () => undefined;
  const { pool } = makePool({
    size: 1,
    open: async (template) => {
      const instance = makeInstance([]);
      opened.push(instance);
      return { plan: { ...PLAN, template }, instance };
    },
    discard: async ({ instance }) => {
      if (instance === opened[0]) await new Promise<void>((resolve) => (remove = resolve));
      isRemoved ||= instance === opened[0];
      await instance.close();
    },
  });
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(1), 20_000);
  opened[0]?.client.fail("gone");
  await vi.waitFor(() => expect(opened).toHaveLength(2), 20_000);
  const closed = pool.close().then(() => isRemoved);
  setImmediate(remove);
  expect(await closed).toBe(true);
});
