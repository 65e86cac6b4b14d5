import { duplexPair } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { JsonLines } from "../../../../src/handlers/workers/json-lines.ts";
import type { WorkerExit } from "../../../../src/handlers/workers/launch-process.ts";
import { RemoteCall, type RemoteTarget } from "../../../../src/handlers/workers/remote-call.ts";
import { WorkerHost } from "../../../../src/handlers/workers/worker-host.ts";
import { RUN_ON_MS, WorkerProcess } from "../../../../src/handlers/workers/worker-process.ts";
import type { ToWorker } from "../../../../src/handlers/workers/worker-protocol.ts";
import { contextOf } from "../../../../src/call/call.ts";
import { Lifeline } from "../../../../src/call/lifeline.ts";
import { SILENT_LOGGER } from "../../../../src/telemetry/logger.ts";
import { makeCall } from "../../call/fixture.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => vi.useRealTimers());

const MAX_LINE_CHARS = 100_000;

const remote: RemoteTarget = {
  target: {
    kind: "function",
    file: "waits.ts",
    exportName: "waits",
    call: { style: "positional", parameters: ["name"] },
    dates: [],
    isGenerator: false,
  },
  what: 'the tool "waits"',
  isExclusive: false,
};

/** A worker's two sides, and handlers that end when they are told. */
async function startWorker(killed: WorkerExit = { code: null, signal: "SIGKILL" }) {
  const [near, far] = duplexPair();
  const going = new Map<string, () => void>();
  const waits = (name: string): Promise<string> =>
    new Promise((resolve) => going.set(name, () => resolve(`${name} is done`)));
  const line = new JsonLines({
    stream: far,
    maxLineChars: MAX_LINE_CHARS,
    onMessage: (message) => host.receive(message as ToWorker),
    onEnd: () => undefined,
  });
  const host = new WorkerHost({ importFile: () => Promise.resolve({ waits }), send: (message) => line.send(message) });
  let end: (exit: WorkerExit) => void = () => undefined;
  const exited = new Promise<WorkerExit>((resolve) => (end = resolve));
  const kill = vi.fn<() => void>(() => end(killed));
  const worker = new WorkerProcess({
    launched: { stream: near, outputs: [], exited, kill },
    logger: SILENT_LOGGER,
    maxLineChars: MAX_LINE_CHARS,
    sources: new Map(),
    onFree: () => undefined,
    onReturned: () => undefined,
    onUnloaded: () => false,
    onChanged: () => undefined,
    onListChanged: () => undefined,
    onExit: () => undefined,
  });
  line.send({ t: "hello", version: "test" });
  await vi.waitFor(() => expect(worker.isAvailable).toBe(true), 20_000);
  const start = async (name: string) => {
    const life = new Lifeline();
    const lost = vi.fn<() => void>();
    const watch = { began: () => undefined, ended: () => undefined, lost };
    const context = contextOf({ ...makeCall(), watch }, life);
    const result = new Promise((resolve, reject) => {
      worker.dispatch(new RemoteCall({ job: { op: "run", remote, input: { name } }, context, resolve, reject }));
    });
    result.catch(() => undefined);
    await vi.waitFor(() => expect(going.has(name)).toBe(true), 20_000);
    return { result, lost, stop: () => life.end(), finish: () => going.get(name)?.() };
  };
  return { worker, kill, start, hangUp: () => far.end() };
}

/** Lets both sides say what they have to say, then time goes by: half a second after a stop its worker is looked at. */
async function pass(ms: number): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  await vi.advanceTimersByTimeAsync(1000);
  await vi.advanceTimersByTimeAsync(ms);
}

test("a call that runs on long after it was stopped costs its worker, when all others are done", async () => {
  const { worker, kill, start } = await startWorker();
  const careless = await start("careless");
  const neighbour = await start("neighbour");
  careless.stop();
  await pass(RUN_ON_MS / 2);
  expect(worker.isAvailable).toBe(true);
  await pass(RUN_ON_MS);
  expect([worker.isAvailable, kill.mock.calls.length]).toEqual([false, 0]);
  neighbour.finish();
  expect(await neighbour.result).toBe("neighbour is done");
  expect(kill).toHaveBeenCalled();
  await expect(careless.result).rejects.toThrow("ran on long after it was cancelled");
  expect([careless.lost.mock.calls.length, neighbour.lost.mock.calls.length]).toEqual([1, 0]);
});

test("a cancelled call that ends before the limit affects no other call", async () => {
  const { worker, kill, start } = await startWorker();
  const slow = await start("slow");
  slow.stop();
  await pass(RUN_ON_MS / 2);
  slow.finish();
  await vi.waitFor(() => expect(worker.size).toBe(0), 20_000);
  await pass(RUN_ON_MS);
  expect([worker.isAvailable, kill.mock.calls.length, slow.lost.mock.calls.length]).toEqual([true, 0, 0]);
});

test("one whose stream ended takes no more calls: they would be lost with it", async () => {
  const { worker, kill, start, hangUp } = await startWorker();
  await start("last");
  hangUp();
  await vi.waitFor(() => expect(worker.isAvailable).toBe(false), 20_000);
  expect([worker.isOver, kill.mock.calls.length]).toEqual([false, 0]);
});

test.each<[string, WorkerExit, string]>([
  [
    "lives on is ended, and its calls are told so",
    { code: null, signal: "SIGKILL" },
    "closed its stream to the server",
  ],
  ["was about to exit keeps its exit code, though it was killed in the meantime", { code: 3, signal: null }, "code 3"],
])("one that closed its stream and %s", async (_name, killed, reason) => {
  const { kill, start, hangUp } = await startWorker(killed);
  const { result } = await start("last");
  hangUp();
  await pass(1000);
  expect(kill).toHaveBeenCalledOnce();
  await expect(result).rejects.toThrow(reason);
});
