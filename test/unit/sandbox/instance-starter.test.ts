import { Templates } from "../../../src/sandbox/templates.ts";
import { duplexPair, PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ServerConnection } from "../../../guest/connection.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import type { Instance, InstanceExit, Runtime, RuntimeProblem } from "../../../src/sandbox/runtimes/runtime.ts";
import {
  type ConnectedInstance,
  InstanceStarter,
  type InstanceStarterOptions,
} from "../../../src/sandbox/instance-starter.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { PLAN } from "./instance-plan.ts";

const HELLO = { version: "1", languages: ["python"] } as const;

interface Fixture {
  readonly instance: ConnectedInstance;
  /** Says anything in the guest's name. */
  say(text: string): void;
  silence(): void;
}

/** An instance that lives until it is stopped, whatever its guest does. */
async function open(exit: InstanceExit): Promise<Fixture> {
  const [host, inside] = duplexPair();
  new ServerConnection(inside, inside).serve({ "guest.hello": () => HELLO });
  let stop: (exit: InstanceExit) => void = () => undefined;
  const exited = new Promise<InstanceExit>((resolve) => {
    stop = resolve;
  });
  const cell: Instance = {
    id: "owl-test",
    stream: host,
    diagnostics: new PassThrough(),
    exited,
    usage: async () => ({ memoryBytes: 0, cpuMs: 0, pids: 0 }),
    stop: async () => stop(exit),
  };
  const starter = starterOn(makeRuntime({ start: async () => cell }));
  const instance = await starter.open(PLAN, new AbortController().signal);
  return { instance, say: (text) => void inside.write(text), silence: () => void inside.end() };
}

function makeRuntime(own: Partial<Runtime>): Runtime {
  return {
    name: "bubblewrap",
    probe: async () => ({ runtime: "bubblewrap", checks: [] }),
    start: () => Promise.reject(new Error("nothing starts here")),
    discard: async () => true,
    reap: async () => ({ removed: [] }),
    close: async () => undefined,
    ...own,
  };
}

function starterOn(
  runtime: Runtime,
  runtimesOfTemplates?: InstanceStarterOptions["runtimesOfTemplates"],
): InstanceStarter {
  return new InstanceStarter({
    templates: new Templates(),
    runtime,
    ...(runtimesOfTemplates !== undefined && { runtimesOfTemplates }),
    logger: SILENT_LOGGER,
    workspacePath: "/workspace",
    maxFrameBytes: 10_000,
    folder: "/nowhere",
    openEgress: () => Promise.reject(new Error("no network here")),
  });
}

/** No time passes in these tests: whatever waits for a clock waits forever. */
function stopTheClock(): void {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
}

test("a guest that was taken over is ended at once, and the reason is what it said", async () => {
  const { instance, say } = await open({ code: null, signal: "SIGKILL", reason: "stopped" });
  stopTheClock();
  say("garbage\r\n\r\n");
  expect(await instance.ended).toContain("malformed frame");
});

test("why a guest fell silent is asked after its instance was stopped", async () => {
  const { instance, silence } = await open({ code: 137, signal: null, reason: "memory" });
  stopTheClock();
  silence();
  expect(await instance.ended).toBe("it used more memory than its flavor allows");
});

test("what was made for a program that does not start is removed", async () => {
  const discarded: string[] = [];
  const starter = starterOn(makeRuntime({ discard: async (folder) => discarded.push(folder) > 0 }));
  const program = { program: ["/bin/true"], volumes: [], env: {} };
  await expect(starter.openProgram(program, new AbortController().signal)).rejects.toThrow("nothing starts here");
  expect(discarded).toEqual([expect.stringMatching(/^\/nowhere\/owl-[0-9a-f]{20}$/)]);
});

test("a start that fails is told as it was, also when nothing can be removed after it", async () => {
  const discard = vi.fn<Runtime["discard"]>(() => Promise.reject(new Error("not removed")));
  const starter = starterOn(makeRuntime({ discard }));
  const { instanceId: _id, folder: _folder, language: _language, ...parts } = PLAN;
  await expect(starter.openNew(parts, new AbortController().signal)).rejects.toThrow("nothing starts here");
  expect(discard).toHaveBeenCalledOnce();
});

describe("trouble of a runtime that only templates use", () => {
  const error = new OwlError("sandbox_unavailable", "no image");
  const told = (problem: RuntimeProblem): unknown => {
    const shared = makeRuntime({ name: "docker", problem: () => problem });
    const ofTemplates = new Map([
      ["alpha", shared],
      ["beta", shared],
    ]);
    return starterOn(makeRuntime({}), ofTemplates).problem;
  };

  test.each([
    ["has the name of the template that met it", { error, template: "beta" }, "beta"],
    ["also where that one has the usual image", { error, template: "beta", isCommon: true }, "beta"],
    ["is that of the first one where all have it", { error }, "alpha"],
  ])("%s", (_what, problem, template) => {
    expect(told(problem)).toEqual({ error, template });
  });
});

test("trouble with the image that most templates have is everybody's", () => {
  const error = new OwlError("sandbox_unavailable", "no image");
  const starter = starterOn(
    makeRuntime({ name: "docker", problem: () => ({ error, template: "node", isCommon: true }) }),
  );
  expect(starter.problem).toEqual({ error });
});
