import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { launchInSandbox } from "../../../../src/handlers/workers/launch-in-sandbox.ts";
import type { LaunchedWorker } from "../../../../src/handlers/workers/launch-process.ts";
import { WorkerPool } from "../../../../src/handlers/workers/worker-pool.ts";
import type { InstanceExit } from "../../../../src/sandbox/runtimes/runtime.ts";
import { SILENT_LOGGER } from "../../../../src/telemetry/logger.ts";

// A pool that closes waits three seconds at most: here that time never comes.
beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => vi.useRealTimers());

function settledLater<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** A worker in a sandbox that ends when it is told, and whose disk is let go of when that is told. */
async function launchFake() {
  const exit = settledLater<InstanceExit>();
  const cleared = settledLater<void>();
  const close = vi.fn<() => Promise<void>>(() => cleared.promise);
  const stream = new PassThrough();
  stream.once("close", () => exit.resolve({ code: 0, signal: null }));
  const instance = {
    id: "owl-test",
    stream,
    diagnostics: new PassThrough(),
    exited: exit.promise,
    usage: () => Promise.reject(new Error("nobody asks")),
    stop: () => Promise.resolve(),
  };
  const openProgram = () => Promise.resolve({ instance, close });
  return { launched: await launchInSandbox("node", { openProgram, paths: [] }), exit, cleared, close };
}

function openPool(launched: LaunchedWorker, error = vi.fn<() => void>()): WorkerPool {
  return new WorkerPool({
    launch: () => Promise.resolve(launched),
    logger: { ...SILENT_LOGGER, error },
    size: 1,
    maxSize: 1,
    isPerClient: false,
    maxLineChars: 1000,
    sourcesOf: () => undefined,
    onChanged: () => undefined,
    onListChanged: () => undefined,
    onLead: () => undefined,
  });
}

test("the end of a worker is known while its sandbox is still being cleared", async () => {
  const { launched, exit, cleared, close } = await launchFake();
  exit.resolve({ code: 3, signal: null });
  expect(await launched.exited).toEqual({ code: 3, signal: null });
  await vi.waitFor(() => expect(close).toHaveBeenCalledOnce(), 20_000);
  cleared.resolve();
  await launched.cleared;
});

test("a pool that closes waits until the sandbox is cleared", async () => {
  const { launched, cleared, close } = await launchFake();
  const pool = openPool(launched);
  const closing = pool.close();
  await vi.waitFor(() => expect(close).toHaveBeenCalledOnce(), 20_000);
  expect(pool.isOver).toBe(false);
  cleared.resolve();
  await closing;
  expect(pool.isOver).toBe(true);
});

test("a sandbox that cannot be removed is logged, and does not delay the close", async () => {
  const { launched, cleared } = await launchFake();
  const error = vi.fn<() => void>();
  const pool = openPool(launched, error);
  cleared.reject(new Error("it is in use"));
  await pool.close();
  expect(error).toHaveBeenCalledWith("the sandbox of a handler worker was not cleaned up", {
    error: new Error("it is in use"),
  });
});
