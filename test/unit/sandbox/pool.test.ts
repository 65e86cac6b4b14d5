import { duplexPair } from "node:stream";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";
import { expect, onTestFinished, test, vi } from "vitest";
import { GuestClient } from "../../../src/sandbox/guest-client.ts";
import type { Place } from "../../../src/sandbox/place.ts";
import { Pool, type PooledPlace, type PoolOptions } from "../../../src/sandbox/pool.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";

/** A place whose guest knows how to warm up and nothing else. */
function makePlace(warmed: unknown[]): Place {
  const [host, inside] = duplexPair();
  const guest = createMessageConnection(new StreamMessageReader(inside), new StreamMessageWriter(inside));
  guest.onRequest("code.warm", (params: unknown) => {
    warmed.push(params);
    return {};
  });
  guest.listen();
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

const PLAN: PooledPlace["plan"] = {
  cellId: "cell",
  folder: "/nowhere",
  template: "python",
  language: "python",
  flavor: "small",
  env: {},
  volumes: [],
  network: { allow: [] },
};

interface Fixture {
  readonly pool: Pool;
  readonly warmed: unknown[];
  readonly discarded: PooledPlace[];
}

function makePool(options: Partial<PoolOptions> = {}): Fixture {
  const warmed: unknown[] = [];
  const discarded: PooledPlace[] = [];
  const pool = new Pool({
    size: 2,
    templates: ["python", "node"],
    template: "python",
    flavor: "small",
    preload: ["numpy"],
    logger: SILENT_LOGGER,
    open: async (template) => ({
      plan: { ...PLAN, template, language: template === "node" ? "node" : "python" },
      place: makePlace(warmed),
    }),
    discard: async (pooled) => {
      discarded.push(pooled);
      await pooled.place.close();
    },
    hasRoom: () => true,
    ...options,
  });
  onTestFinished(() => pool.close());
  return { pool, warmed, discarded };
}

test("it fills up to its size, each with its interpreter warm and the modules imported", async () => {
  const { pool, warmed } = makePool();
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(2));
  expect(warmed).toEqual([
    { language: "python", preload: ["numpy"] },
    { language: "python", preload: ["numpy"] },
  ]);
  expect(pool.waiting("node")).toBe(0);
});

test("a claim is answered at once and replaced; demand raises the number, up to four times", async () => {
  const { pool } = makePool();
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(2));
  for (let claims = 0; claims < 12; claims += 1) pool.claim("python");
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(8));
});

test("another template is kept warm while it is asked for", async () => {
  const { pool, warmed } = makePool();
  expect(pool.claim("node")).toBeUndefined();
  await vi.waitFor(() => expect(pool.waiting("node")).toBe(1));
  expect(warmed).toContainEqual({ language: "node", preload: [] });
});

test("without room nothing is started", async () => {
  const { pool } = makePool({ hasRoom: () => false });
  pool.refill();
  expect(pool.count).toBe(0);
});

test("one that dies while it waits is removed and replaced", async () => {
  const opened: Place[] = [];
  const { pool, discarded } = makePool({
    size: 1,
    open: async (template) => {
      const place = makePlace([]);
      opened.push(place);
      return { plan: { ...PLAN, template }, place };
    },
  });
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(1));
  opened[0]?.client.fail("gone");
  await vi.waitFor(() => expect(opened).toHaveLength(2));
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(1));
  expect(discarded.map(({ place }) => place)).toEqual([opened[0]]);
  expect(pool.claim("python")?.place).toBe(opened[1]);
});

test("closing stops everything that waits, and what is on its way", async () => {
  const { pool, discarded } = makePool();
  pool.refill();
  await vi.waitFor(() => expect(pool.waiting("python")).toBe(2));
  pool.claim("python");
  await pool.close();
  expect(discarded.length).toBeGreaterThanOrEqual(1);
  expect(pool.count).toBe(0);
});
