import { mkdir, readdir, rename, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { OwlError } from "../../../errors/owl-error.ts";
import { type InstanceMount, volumeMounts } from "../instance-mounts.ts";
import { GuestStream } from "../guest-stream.ts";
import type { InstanceSpec, Volume } from "../runtime.ts";
import { checkSpec, type StartRequest } from "../start-request.ts";
import { type GuestSocket, openGuestSocket, creditedStream, openEgressBridge } from "./host-socket.ts";
import { destroyMachine, followLauncher, type LaunchedProgram, MachineInstance } from "./machine-instance.ts";
import { explainFullDisk, explainMachineError } from "./machine-failure.ts";
import type { MachineHost } from "./machine-host.ts";
import { launchArguments, newMachineName, type MachineParts, planMachine, PYTHON } from "./machine-plan.ts";
import type { Machine } from "./sdk.ts";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { DiskImages } from "../bubblewrap/disk-image.ts";
import { runTool } from "../run-tool.ts";

/** The id is part of a machine's name, whose length is limited. */
const MAX_ID_CHARS = 80;
const MAX_COMPLAINT_CHARS = 500;
const DISK_TIMEOUT_MS = 30_000;
const DISK_PAUSE_MS = 100;
const NO_EMPTY_PATHS = { file: "", folder: "" };
const COPY_TIMEOUT_MS = 300_000;
const DISK = /^workspace-[0-9a-f]{8}\.img$/;

/** Boots a machine and starts the guest in it; removes everything when that fails. */
export async function startMachine(host: MachineHost, request: StartRequest): Promise<MachineInstance> {
  const { spec, signal, command } = request;
  checkSpec(spec, { ...host, maxIdChars: MAX_ID_CHARS });
  checkImage(host.imageOf(spec.template));
  signal.throwIfAborted();
  const { volumes, workspacePath } = spec;
  refuseProtected(volumes);
  const mounts = await volumeMounts({ volumes, workspacePath, dataFolder: host.dataFolder, empty: NO_EMPTY_PATHS });
  const disk = await prepare(host, spec, mounts);
  const socket = await openGuestSocket(host.socketsFolder);
  const bridge =
    spec.egressSocket === undefined ? undefined : await openEgressBridge(host.socketsFolder, spec.egressSocket);
  const closeSockets = async (): Promise<void> => {
    await socket.close();
    await bridge?.close();
  };
  const endsAtMs = Date.now() + host.maxDurationSeconds * 1000;
  try {
    const sockets = { streamSocket: socket.path, egressSocket: bridge?.path };
    const parts = { spec, mounts, disk, ...sockets, ...(command !== undefined && { command }) };
    const machine = await bootWhenDiskIsFree(host, parts, signal);
    const launching = { machine, parts, socket, closeSockets, endsAtMs, signal };
    return await orDestroyed(machine, async () => await launch(host, launching));
  } catch (error) {
    await closeSockets();
    throw explainMachineError(error, host.imageOf(spec.template));
  }
}

/** Mounts over parts of a volume cannot protect them here: root inside the machine could unmount them. */
function refuseProtected(volumes: readonly Volume[]): void {
  const volume = volumes.find(({ protectedPaths = [] }) => protectedPaths.length > 0);
  if (volume === undefined) return;
  const [path] = volume.protectedPaths ?? [];
  throw new OwlError(
    "sandbox_unavailable",
    `a microVM cannot keep ${path?.relativePath} of a mounted folder from its sandbox`,
    {
      hint: "The operator must mount a folder without configuration, handlers, skills and keys, or use another runtime.",
    },
  );
}

/** microsandbox uses a path as a writable root folder for all machines: files that one writes there would run in the next. */
function checkImage(image: string): void {
  if (!/^[./~]/.test(image)) return;
  throw new OwlError("sandbox_unavailable", `${image} is a folder, and microVMs start from images`, {
    hint: `Make an image of it: \`tar -C ${image} -c . | docker import - box && docker save box -o box.tar && npx msb load -i box.tar\`, then set sandbox.image to box.`,
  });
}

/** Retries while the disk is in use: it is released a moment after the machine on it has ended. */
async function bootWhenDiskIsFree(
  host: MachineHost,
  parts: Omit<MachineParts, "name">,
  signal: AbortSignal,
): Promise<Machine> {
  for (const deadline = Date.now() + DISK_TIMEOUT_MS; ; await delay(DISK_PAUSE_MS, undefined, { signal })) {
    try {
      return await boot(host, parts);
    } catch (error) {
      const isHeld = error instanceof Error && /already attached/i.test(error.message);
      if (!isHeld || Date.now() > deadline) throw error;
    }
  }
}

/** Not aborted while it runs: a machine that is made after an abort would have no owner. */
async function boot(host: MachineHost, parts: Omit<MachineParts, "name">): Promise<Machine> {
  const name = newMachineName(host, parts.spec.id);
  try {
    const machine = await planMachine(host, { ...parts, name }).create();
    host.logger.info("microVM created", { machine: name, sandbox: parts.spec.id });
    return machine;
  } catch (error) {
    // A machine that did not boot stays in microsandbox's list.
    const found = await host.sdk.Sandbox.get(name).catch(() => undefined);
    if (found !== undefined) await destroyMachine(found);
    throw error;
  }
}

interface Launching {
  readonly machine: Machine;
  readonly parts: Omit<MachineParts, "name">;
  readonly socket: GuestSocket;
  readonly closeSockets: () => Promise<void>;
  readonly endsAtMs: number;
  readonly signal: AbortSignal;
}

async function launch(host: MachineHost, launching: Launching): Promise<MachineInstance> {
  const { machine, parts, socket, closeSockets, endsAtMs, signal } = launching;
  signal.throwIfAborted();
  const args = launchArguments(host, parts);
  const handle = await machine.execStreamWith(PYTHON, (options) => options.args(args).user("0").stdinNull());
  const launched = followLauncher(handle);
  // Without a code, the machine or microsandbox is gone.
  void launched.ended.then((code) => host.logger.info("microVM ended", { sandbox: parts.spec.id, code }));
  const { input, output } = creditedStream(await firstConnection(socket, launched, signal));
  return new MachineInstance({
    instanceId: parts.spec.id,
    machine,
    stream: new GuestStream(input, output),
    launched,
    endsAtMs,
    closeSockets,
    left: host.left,
    logger: host.logger,
  });
}

async function firstConnection(socket: GuestSocket, launched: LaunchedProgram, signal: AbortSignal): Promise<Socket> {
  const given = new AbortController();
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(toError(signal.reason)), { once: true, signal: given.signal });
  });
  const failed = launched.ended.then(async (code) => {
    throw new OwlError(
      "sandbox_unavailable",
      `nothing can be started in the image: ${await complaint(launched, code)}`,
      {
        hint: "It needs glibc, /bin/sh and /usr/bin/python3; deploy/docker/sandbox.Dockerfile is a start.",
      },
    );
  });
  // The promises that lose the race may still reject.
  aborted.catch(() => undefined);
  failed.catch(() => undefined);
  try {
    return await Promise.race([socket.connected, failed, aborted]);
  } finally {
    given.abort();
  }
}

async function complaint({ diagnostics }: LaunchedProgram, code: number | null): Promise<string> {
  let text = "";
  for await (const chunk of diagnostics) text = (text + String(chunk)).slice(-MAX_COMPLAINT_CHARS);
  const lines = text.trim().split("\n");
  return (
    (lines.findLast((each) => each.startsWith("launcher: ")) ?? lines.at(-1)) ||
    `it ended with ${code ?? "its machine"}`
  );
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

async function orDestroyed<T>(machine: Machine, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    await destroyMachine(machine);
    throw error;
  }
}

/** Records the instance and provides its workspace; returns the workspace's disk. */
async function prepare(
  host: MachineHost,
  spec: InstanceSpec,
  mounts: readonly InstanceMount[],
): Promise<string | undefined> {
  try {
    await recordInstance(host, spec);
    return await provideWorkspace(host, spec, mounts);
  } catch (error) {
    throw explainFullDisk(error);
  }
}

/** Before anything is made, so that another server can clean up after a crash. */
async function recordInstance({ records, ownership }: MachineHost, { id, folder }: InstanceSpec): Promise<void> {
  const { owner } = records;
  await records.writeInstance({ id, serverId: ownership.serverId, owner, folder, groups: [] });
}

async function provideWorkspace(
  host: MachineHost,
  spec: InstanceSpec,
  mounts: readonly InstanceMount[],
): Promise<string | undefined> {
  await mkdir(spec.folder, { recursive: true, mode: 0o700 });
  if (mounts.some(({ guestPath }) => guestPath === spec.workspacePath)) return undefined;
  return await provideDisk(host.disks, spec.folder, spec.resources.diskBytes);
}

/**
 * The disk of a workspace, under a new name for each machine: microsandbox keeps a disk open as long as the server runs, also
 * when its machine is gone. The content of the disk before is copied as a sparse file.
 */
async function provideDisk(disks: DiskImages, folder: string, sizeBytes: number): Promise<string> {
  const before = (await readdir(folder)).find((name) => DISK.test(name));
  const path = join(folder, `workspace-${randomBytes(4).toString("hex")}.img`);
  if (before === undefined) {
    await disks.provide(path, sizeBytes);
    return path;
  }
  const draft = `${path}.new`;
  const args = ["--reflink=auto", "--sparse=always", "--", join(folder, before), draft];
  const { code, stderr } = await runTool({ command: "cp", args, timeoutMs: COPY_TIMEOUT_MS });
  if (code !== 0) {
    await rm(draft, { force: true });
    throw new OwlError("sandbox_unavailable", `cannot copy the disk of a workspace: ${stderr.trim()}`, {
      retryable: true,
      hint: "Free space in the data folder; then call again.",
    });
  }
  // In this order, one complete disk is left after a crash.
  await rename(draft, path);
  await rm(join(folder, before), { force: true });
  return path;
}
