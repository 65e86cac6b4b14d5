import { Templates } from "../../../src/sandbox/templates.ts";
import { duplexPair, PassThrough } from "node:stream";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Cell, CellExit, Runtime } from "../../../src/runtimes/runtime.ts";
import { type Place, type PlacePlan, Places } from "../../../src/sandbox/place.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";

const PLAN: PlacePlan = {
  cellId: "cell",
  folder: "/nowhere",
  template: "python",
  language: "python",
  flavor: "small",
  env: {},
  volumes: [],
  network: { allow: [] },
};

const HELLO = { version: "1", languages: ["python"] };

interface Fixture {
  readonly place: Place;
  /** Says anything in the guest's name. */
  say(text: string): void;
  silence(): void;
}

/** A cell that lives until it is stopped, whatever its guest does. */
async function open(exit: CellExit): Promise<Fixture> {
  const [host, inside] = duplexPair();
  const guest = createMessageConnection(new StreamMessageReader(inside), new StreamMessageWriter(inside));
  guest.onRequest("guest.hello", () => HELLO);
  guest.listen();
  let stop: (exit: CellExit) => void = () => undefined;
  const exited = new Promise<CellExit>((resolve) => {
    stop = resolve;
  });
  const cell: Cell = {
    id: "cell",
    stream: host,
    diagnostics: new PassThrough(),
    exited,
    usage: async () => ({ memoryBytes: 0, cpuMs: 0, pids: 0 }),
    stop: async () => stop(exit),
  };
  const runtime: Runtime = {
    name: "bubblewrap",
    probe: async () => ({ runtime: "bubblewrap", checks: [] }),
    start: async () => cell,
    discard: async () => undefined,
    reap: async () => ({ removed: [] }),
    close: async () => undefined,
  };
  const places = new Places({
    templates: new Templates(),
    runtime,
    logger: SILENT_LOGGER,
    workspacePath: "/workspace",
    maxFrameBytes: 10_000,
    folder: "/nowhere",
    openDoor: () => Promise.reject(new Error("no network here")),
  });
  const place = await places.open(PLAN, new AbortController().signal);
  return { place, say: (text) => void inside.write(text), silence: () => void inside.end() };
}

/** No time passes in these tests: whatever waits for a clock waits forever. */
function stopTheClock(): void {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
}

test("a guest that was taken over is ended at once, and the reason is what it said", async () => {
  const { place, say } = await open({ code: null, signal: "SIGKILL", reason: "stopped" });
  stopTheClock();
  say("garbage\r\n\r\n");
  expect(await place.ended).toContain("malformed frame");
});

test("why a guest fell silent is asked after its cell was stopped", async () => {
  const { place, silence } = await open({ code: 137, signal: null, reason: "memory" });
  stopTheClock();
  silence();
  expect(await place.ended).toBe("it used more memory than its flavor allows");
});
