import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createMicrosandboxRuntime } from "../../../../../src/sandbox/runtimes/microsandbox/microsandbox-runtime.ts";
import type { InstanceSpec, Runtime } from "../../../../../src/sandbox/runtimes/runtime.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { fakeMachine, fakeSdk, type Written } from "./fake-sdk.ts";

const MIB = 1024 * 1024;
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

interface Lab {
  readonly dataFolder: string;
  readonly written: Written;
  readonly runtime: Runtime;
  readonly spec: InstanceSpec;
}

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-msb-"));
  folders.push(folder);
  mkdirSync(join(folder, "guest"));
  writeFileSync(join(folder, "guest", "guest.mjs"), "");
  mkdirSync(join(folder, "shared"));
  return folder;
}

async function lab(
  folder = place(),
  machines: Parameters<typeof fakeSdk>[0] = {},
  create?: Parameters<typeof fakeSdk>[1],
  image: string | ((template: string) => string) = "box:1",
): Promise<Lab> {
  const dataFolder = join(folder, "data");
  const { sdk, written } = fakeSdk(machines, create);
  const runtime = await createMicrosandboxRuntime({
    sdk,
    dataFolder,
    logger: createLogger({ level: "error", format: "json", write: () => undefined }),
    guestFolder: join(folder, "guest"),
    serverId: "server1",
    imageOf: typeof image === "string" ? () => image : image,
    maxAgeSeconds: 100,
  });
  const spec: InstanceSpec = {
    id: "owl-1",
    template: "python",
    resources: { cpus: 1.5, memoryBytes: 512 * MIB, maxPids: 64, diskBytes: 16 * MIB },
    folder: join(dataFolder, "sandboxes", "owl-1"),
    workspacePath: "/workspace",
    volumes: [{ hostPath: join(folder, "shared"), guestPath: "/shared", isReadOnly: false }],
    env: {},
    egressSocket: join(folder, "egress.sock"),
  };
  return { dataFolder, written, runtime, spec };
}

test("a machine has the flavor's processors and memory, no network, a disk and the operator's folders", async () => {
  const { runtime, written, spec, dataFolder } = await lab();
  await expect(runtime.start(spec, AbortSignal.timeout(60_000))).rejects.toThrow("a microVM does not start here");
  const dataId = readFileSync(join(dataFolder, "microsandbox", "id"), "utf8");
  expect(written.calls).toEqual(
    expect.arrayContaining([
      ["builder", expect.stringMatching(`^owlclaw-${dataId}-owl-1-[0-9a-f]{6}$`)],
      ["image", "box:1"],
      ["pullPolicy", "never"],
      ["cpus", 2],
      ["memory", 512],
      ["disableNetwork"],
      ["maxDuration", 3700],
      ["vsock", expect.stringContaining(join(dataFolder, "microsandbox", "lines", "server1")), 5002],
      ["volume(/workspace).disk", expect.stringMatching(`^${spec.folder}/workspace-[0-9a-f]{8}.img$`)],
      ["volume(/shared).bind", spec.volumes[0]?.hostPath],
      ["volume(/opt/owlclaw).readonly"],
      ["volume(/opt/owlclaw-node).readonly"],
    ]),
  );
  expect(written.calls).not.toContainEqual(["volume(/shared).readonly"]);
  expect(written.calls.find(([name]) => name === "labels")?.[1]).toMatchObject({ "owlclaw.data": dataId });
  await runtime.close();
});

test("a machine that does not start leaves no socket, and its disk until it is discarded", async () => {
  const { runtime, spec, dataFolder } = await lab();
  await expect(runtime.start(spec, AbortSignal.timeout(60_000))).rejects.toThrow("does not start here");
  expect(readdirSync(join(dataFolder, "microsandbox", "lines", "server1"))).toEqual([]);
  await runtime.discard(spec.folder);
  expect(existsSync(spec.folder)).toBe(false);
  await expect(runtime.discard(tmpdir())).rejects.toThrow("below the data folder");
  await runtime.close();
});

test("a machine that did not start is taken off microsandbox's list", async () => {
  const { runtime, spec, written } = await lab();
  await expect(runtime.start({ ...spec, id: "left" }, AbortSignal.timeout(60_000))).rejects.toThrow("does not start");
  expect(written.destroyed).toEqual([expect.stringContaining("-left-")]);
  await runtime.close();
});

test("each machine has a disk of a new name, with what was on the one before", async () => {
  const { runtime, spec } = await lab();
  const start = async (): Promise<string[]> => {
    await expect(runtime.start(spec, AbortSignal.timeout(60_000))).rejects.toThrow("does not start here");
    return readdirSync(spec.folder);
  };
  const [first = "", ...none] = await start();
  writeFileSync(join(spec.folder, first), "what was there");
  const [second = "", ...more] = await start();
  expect([none, more]).toEqual([[], []]);
  expect(second).not.toBe(first);
  expect(readFileSync(join(spec.folder, second), "utf8")).toBe("what was there");
  await runtime.close();
});

test("a disk that the machine before still holds is waited for", async () => {
  let tries = 0;
  const create = (): Promise<never> => {
    tries += 1;
    const isHeld = tries < 3;
    return Promise.reject(new Error(isHeld ? "disk image is already attached" : "[BootStart] at last"));
  };
  const { runtime, spec } = await lab(place(), {}, create);
  await expect(runtime.start(spec, AbortSignal.timeout(60_000))).rejects.toThrow("at last");
  expect(tries).toBe(3);
  await runtime.close();
});

test("the probe says why no machine boots, and a missing image can still come", async () => {
  const dead = await lab();
  const { checks } = await dead.runtime.probe(AbortSignal.timeout(60_000));
  expect(checks).toMatchObject([{ name: "start", holds: false, detail: expect.stringContaining("no /dev/kvm") }]);
  await dead.runtime.close();
  const bare = await lab(place(), {}, () => Promise.reject(new Error("image not cached: box:1")));
  await expect(bare.runtime.probe(AbortSignal.timeout(60_000))).rejects.toMatchObject({ retryable: true });
  await bare.runtime.close();
});

test("what a dead server left is removed, and nothing of a living one or of other applications", async () => {
  const folder = place();
  const first = await lab(folder);
  const dataId = readFileSync(join(first.dataFolder, "microsandbox", "id"), "utf8");
  const dead = { pid: 1, startTicks: "0", bootId: "another boot" };
  const left = join(first.dataFolder, "sandboxes", "owl-dead");
  mkdirSync(left, { recursive: true });
  const record = { id: "owl-dead", serverId: "gone", owner: dead, folder: left, groups: [] };
  writeFileSync(join(first.dataFolder, "microsandbox", "cells", "owl-dead.json"), JSON.stringify(record));
  const labels = (owner: unknown): Record<string, string> => ({
    "owlclaw.data": dataId,
    "owlclaw.owner": JSON.stringify(owner),
    "owlclaw.cell": "owl-dead",
  });
  const server = { serverId: "gone", owner: dead, groups: [] };
  writeFileSync(join(first.dataFolder, "microsandbox", "servers", "gone.json"), JSON.stringify(server));
  for (const part of ["lines", "guests"])
    mkdirSync(join(first.dataFolder, "microsandbox", part, "gone"), { recursive: true });
  const second = await lab(folder, {
    ours: labels(dead),
    "of somebody who lives": labels({ pid: process.pid }),
    foreign: {},
    "of another folder": { ...labels(dead), "owlclaw.data": "other" },
  });
  expect(await second.runtime.reap()).toEqual({ removed: ["owl-dead"] });
  expect(second.written.destroyed).toEqual(["ours"]);
  expect(existsSync(left)).toBe(false);
  expect(readdirSync(join(first.dataFolder, "microsandbox", "lines"))).toEqual([]);
  expect(readdirSync(join(first.dataFolder, "microsandbox", "guests"))).toEqual(["server1"]);
  await first.runtime.close();
  await second.runtime.close();
});

test("a data folder whose name is too long for sockets is told, not cut", async () => {
  const folder = join(place(), "x".repeat(80));
  mkdirSync(join(folder, "guest"), { recursive: true });
  mkdirSync(join(folder, "shared"));
  chmodSync(folder, 0o755);
  const { runtime, spec } = await lab(folder);
  await expect(runtime.start(spec, AbortSignal.timeout(60_000))).rejects.toThrow("too long for sockets");
  await runtime.close();
});

test.each(["/srv/box", "./box", "../box", "~/box"])("a folder in place of an image is refused: %s", async (image) => {
  const { runtime, spec, written } = await lab(place(), {}, undefined, image);
  await expect(runtime.start(spec, new AbortController().signal)).rejects.toMatchObject({
    message: `${image} is a folder, and microVMs start from images`,
    hint: expect.stringContaining("msb load") as unknown,
  });
  expect(written.calls.filter(([name]) => name === "image")).toEqual([]);
  await runtime.close();
});

test("a machine that has waited as long as it may still outlives the longest sandbox", async () => {
  const { runtime, spec } = await lab(place(), {}, async (written) => fakeMachine(written, async () => undefined));
  const startedAtMs = Date.now();
  const { endsAtMs = 0 } = await runtime.start(spec, AbortSignal.timeout(60_000));
  const claimedAtMs = startedAtMs + (runtime.maxWaitMs ?? Infinity);
  expect(endsAtMs - claimedAtMs).toBeGreaterThan(100_000);
  await runtime.close();
});

/** What passes by itself is tried again every few seconds. */
function ownSeconds(): () => Promise<unknown> {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  return async () => await vi.advanceTimersByTimeAsync(5000);
}

describe("when microsandbox refuses to remove a machine (with an SDK of the test's own: none boots),", () => {
  interface Refusing extends Lab {
    readonly microsandbox: { refuses: boolean; destroyed: number };
    readonly started: ReturnType<Runtime["start"]>;
  }

  async function refusing(): Promise<Refusing> {
    const microsandbox = { refuses: true, destroyed: 0 };
    const destroy = async (): Promise<void> => {
      if (microsandbox.refuses) throw new Error("busy");
      microsandbox.destroyed += 1;
    };
    const opened = await lab(place(), {}, async (written) => fakeMachine(written, destroy));
    return { ...opened, microsandbox, started: opened.runtime.start(opened.spec, AbortSignal.timeout(60_000)) };
  }

  test("its cell ends all the same, and its workspace starts again when the machine is gone", async () => {
    const { runtime, spec, started, microsandbox } = await refusing();
    const instance = await started;
    await instance.stop();
    expect(await instance.exited).toMatchObject({ reason: "stopped" });
    await expect(runtime.start(spec, AbortSignal.timeout(60_000))).rejects.toMatchObject({
      kind: "sandbox_unavailable",
      message: "the microVM of this workspace cannot be removed: busy",
      retryable: true,
    });
    microsandbox.refuses = false;
    const again = await runtime.start(spec, AbortSignal.timeout(60_000));
    expect(microsandbox.destroyed).toBe(1);
    await again.stop();
    await runtime.close();
    expect(microsandbox.destroyed).toBe(2);
  });

  test("it is removed later, with the workspace that nobody wants any more", async () => {
    const letTimePass = ownSeconds();
    const { runtime, spec, dataFolder, started, microsandbox } = await refusing();
    await (await started).stop();
    await expect(runtime.discard(spec.folder)).rejects.toThrow("cannot be removed: busy");
    await letTimePass();
    expect(existsSync(spec.folder), "a disk that a machine may still write to").toBe(true);
    microsandbox.refuses = false;
    await vi.waitFor(async () => {
      await letTimePass();
      expect(existsSync(spec.folder)).toBe(false);
      expect(readdirSync(join(dataFolder, "microsandbox", "cells"))).toEqual([]);
    }, 20_000);
    expect(microsandbox.destroyed).toBe(1);
    await runtime.close();
  });
});

test.each([
  ["image not cached: box:1", "image_missing"],
  ["No space left on device (os error 28)", "disk_full"],
])("what keeps every machine from starting is known until one starts again: %s", async (message, reason) => {
  const letTimePass = ownSeconds();
  let isWell = false;
  const create = async (written: Written) => {
    if (!isWell) throw new Error(message);
    return fakeMachine(written, async () => undefined);
  };
  const imageOf = (template: string): string => (template === "science" ? "science:1" : "box:1");
  const { runtime, spec } = await lab(place(), {}, create, imageOf);
  expect(runtime.problem?.()).toBeUndefined();
  await expect(runtime.start(spec, AbortSignal.timeout(60_000))).rejects.toMatchObject({ facts: { reason } });
  const error = expect.objectContaining({ facts: expect.objectContaining({ reason }) as unknown }) as unknown;
  await letTimePass();
  expect(runtime.problem?.()).toEqual({ error, template: "python", isCommon: true });
  await runtime.discard(spec.folder);
  // Nobody asks for a machine in the meantime.
  isWell = true;
  await vi.waitFor(async () => {
    await letTimePass();
    expect(runtime.problem?.()).toBeUndefined();
  }, 20_000);
  await expect(
    runtime.start({ ...spec, template: "science" }, AbortSignal.timeout(60_000)).then((instance) => instance.stop()),
  ).resolves.toBeUndefined();
  await runtime.close();
});
