import type { InstanceUsage, Resources } from "../../runtime.ts";
import { mkdir, readFile, writeFile, readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { MountedHierarchies } from "./control-groups.ts";
import { setTimeout as delay } from "node:timers/promises";
import { DETACH_TIMEOUT_MS } from "../disk-image.ts";
import { hasCode, isThere } from "../../host-files.ts";

const CPU_PERIOD_US = 100_000;
const CONTROLLERS = ["memory", "cpu", "pids"] as const;
const MAX_PAUSE_MS = 20;

/** The limits of one instance, enforced by the kernel. */
export interface ControlGroup {
  /** The launcher joins by writing its process id into these files, before anything else runs. */
  readonly joinFiles: readonly string[];
  /** Removed when the instance has ended; recorded, so that another server can remove them. */
  readonly folders: readonly string[];
  usage(): Promise<InstanceUsage>;
  /** How often the kernel killed a process in it because of its memory limit. */
  outOfMemoryKills(): Promise<number>;
  /** In how many periods its processes were throttled. */
  throttledPeriods(): Promise<number>;
}

/** The cgroup folder of this server, in which it makes groups with limits. */
export interface ControlGroupTree {
  readonly version: 1 | 2;
  /** Removed when the server stops. */
  readonly folders: readonly string[];
  create(id: string, resources: Resources): Promise<ControlGroup>;
}

async function readCount(file: string): Promise<number> {
  // The group is removed with the instance.
  const text = await readFile(file, "utf8").catch(() => "0");
  return Number.parseInt(text, 10) || 0;
}

/** One number of a file with `name value` lines. */
async function readFieldOf(file: string, name: string): Promise<number> {
  const text = await readFile(file, "utf8").catch(() => "");
  for (const line of text.split("\n")) {
    const [field, value] = line.split(" ");
    if (field === name) return Number.parseInt(value ?? "0", 10) || 0;
  }
  return 0;
}

async function writeIfPresent(file: string, value: string): Promise<void> {
  try {
    await writeFile(file, value, { flag: "r+" });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Not recursive: Node reports a read-only mount as a missing folder then. */
async function makeGroup(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

/** Whether the system refuses, as opposed to a failure that a retry may fix. */
function isRefused(error: unknown): boolean {
  return hasCode(error, "EACCES", "EPERM", "EROFS");
}

function isMissing(error: unknown): boolean {
  return hasCode(error, "ENOENT", "EOPNOTSUPP");
}

/** Version 1: a group in each controller's hierarchy; `undefined` where this process may not make them. */
export async function openVersion1Tree(
  hierarchies: MountedHierarchies,
  serverName: string,
): Promise<ControlGroupTree | undefined> {
  const roots = new Map<string, string>();
  for (const controller of [...CONTROLLERS, "cpuacct"]) {
    const own = hierarchies.v1.get(controller);
    if (own !== undefined) roots.set(controller, join(own, serverName));
  }
  if (!CONTROLLERS.every((controller) => roots.has(controller))) return undefined;
  const folders = [...new Set(roots.values())];
  try {
    for (const folder of folders) await makeGroup(folder);
  } catch (error) {
    // An unprivileged user, or a container with a read-only mount or without its own group.
    if (isRefused(error) || isMissing(error)) return undefined;
    throw error;
  }
  return { version: 1, folders, create: async (id, resources) => await createVersion1Group({ roots, id, resources }) };
}

async function createVersion1Group(options: {
  roots: ReadonlyMap<string, string>;
  id: string;
  resources: Resources;
}): Promise<ControlGroup> {
  const { roots, id, resources } = options;
  const folderOf = (controller: string): string => join(roots.get(controller) ?? "", id);
  const folders = [...new Set([...roots.keys()].map(folderOf))];
  for (const folder of folders) await mkdir(folder);
  const memory = folderOf("memory");
  const cpu = folderOf("cpu");
  await writeFile(join(memory, "memory.limit_in_bytes"), String(resources.memoryBytes));
  // The file is missing where the kernel does not account for swap.
  await writeIfPresent(join(memory, "memory.memsw.limit_in_bytes"), String(resources.memoryBytes));
  await writeIfPresent(join(memory, "memory.swappiness"), "0");
  await writeFile(join(cpu, "cpu.cfs_period_us"), String(CPU_PERIOD_US));
  await writeFile(join(cpu, "cpu.cfs_quota_us"), String(Math.round(resources.cpus * CPU_PERIOD_US)));
  await writeFile(join(folderOf("pids"), "pids.max"), String(resources.maxPids));
  return {
    joinFiles: folders.map((folder) => join(folder, "cgroup.procs")),
    folders,
    usage: async () => ({
      memoryBytes: await readCount(join(memory, "memory.usage_in_bytes")),
      cpuMs: roots.has("cpuacct") ? (await readCount(join(folderOf("cpuacct"), "cpuacct.usage"))) / 1_000_000 : 0,
      pids: await readCount(join(folderOf("pids"), "pids.current")),
    }),
    outOfMemoryKills: async () => await readFieldOf(join(memory, "memory.oom_control"), "oom_kill"),
    throttledPeriods: async () => await readFieldOf(join(cpu, "cpu.stat"), "nr_throttled"),
  };
}

/** Ends every process in an instance's control groups, and removes the groups. `false`: a process did not end in time. */
export async function endGroups(folders: readonly string[], timeoutMs: number = DETACH_TIMEOUT_MS): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    const removed = await Promise.all(folders.map(async (folder) => await killAndRemove(folder)));
    if (removed.every(Boolean)) return true;
    if (performance.now() > deadline) return false;
    await delay(pauseMs);
  }
}

/** The same for the groups of a server, including groups of instances below them. */
export async function endServerGroups(folders: readonly string[], timeoutMs?: number): Promise<boolean> {
  const below = await Promise.all(
    folders.map(async (folder) => {
      const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
      return entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
    }),
  );
  return (await endGroups(below.flat(), timeoutMs)) && (await endGroups(folders, timeoutMs));
}

async function killAndRemove(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return true;
  }
  // Version 2 kills all of them at once. In version 1 the file does not exist, and the processes are killed one by one.
  await writeFile(join(folder, "cgroup.kill"), "1", { flag: "r+" }).catch(() => undefined);
  const members = await readFile(join(folder, "cgroup.procs"), "utf8").catch(() => "");
  for (const line of members.split("\n")) {
    const pid = Number.parseInt(line, 10);
    if (pid > 1) tryKill(pid);
  }
  return false;
}

export function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has exited.
  }
}

/** Version 2: a group in the one hierarchy; `undefined` where this process may not make it. */
export async function openVersion2Tree(
  hierarchies: MountedHierarchies,
  serverName: string,
): Promise<ControlGroupTree | undefined> {
  if (hierarchies.v2 === undefined) return undefined;
  const { mountPoint, ownFolder } = hierarchies.v2;
  const isMachineRoot = !(await isThere(join(mountPoint, "cgroup.type")));
  // Only the root group of the machine may have processes and enabled controllers at the same time.
  const parent = isMachineRoot && process.getuid?.() === 0 ? mountPoint : ownFolder;
  if (!(await hasControllers(join(parent, "cgroup.controllers")))) return undefined;
  const folder = join(parent, serverName);
  try {
    await mkdir(folder, { recursive: true });
    if (parent !== mountPoint || !isMachineRoot) await leaveForLeaf(parent);
    await enableControllers(parent);
    await enableControllers(folder);
  } catch {
    // Not delegated to this user, or other processes are in the group.
    return undefined;
  }
  return {
    version: 2,
    folders: [folder],
    create: async (id, resources) => await createVersion2Group(join(folder, id), resources),
  };
}

/** A group with enabled controllers may have no processes: the server, and processes beside it, move to a leaf group. */
async function leaveForLeaf(parent: string): Promise<void> {
  const leaf = join(parent, "owlclaw-servers");
  await mkdir(leaf, { recursive: true });
  const ids = (await readFile(join(parent, "cgroup.procs"), "utf8")).split("\n").filter((line) => line !== "");
  for (const id of ids) {
    // The process may have exited.
    await writeFile(join(leaf, "cgroup.procs"), id).catch(() => undefined);
  }
}

async function enableControllers(folder: string): Promise<void> {
  await writeFile(join(folder, "cgroup.subtree_control"), CONTROLLERS.map((name) => `+${name}`).join(" "));
}

async function hasControllers(file: string): Promise<boolean> {
  const names = (await readFile(file, "utf8").catch(() => "")).trim().split(" ");
  return CONTROLLERS.every((name) => names.includes(name));
}

export async function createVersion2Group(folder: string, resources: Resources): Promise<ControlGroup> {
  await mkdir(folder);
  await writeFile(join(folder, "memory.max"), String(resources.memoryBytes));
  await writeIfPresent(join(folder, "memory.swap.max"), "0");
  await writeFile(join(folder, "cpu.max"), `${Math.round(resources.cpus * CPU_PERIOD_US)} ${CPU_PERIOD_US}`);
  await writeFile(join(folder, "pids.max"), String(resources.maxPids));
  return {
    joinFiles: [join(folder, "cgroup.procs")],
    folders: [folder],
    usage: async () => ({
      memoryBytes: await readCount(join(folder, "memory.current")),
      cpuMs: (await readFieldOf(join(folder, "cpu.stat"), "usage_usec")) / 1000,
      pids: await readCount(join(folder, "pids.current")),
    }),
    outOfMemoryKills: async () => await readFieldOf(join(folder, "memory.events"), "oom_kill"),
    throttledPeriods: async () => await readFieldOf(join(folder, "cpu.stat"), "nr_throttled"),
  };
}
