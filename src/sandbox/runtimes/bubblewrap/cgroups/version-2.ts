import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isThere } from "../../is-there.ts";
import type { Resources } from "../../runtime.ts";
import type { ControlGroup, ControlGroupTree } from "./control-group.ts";
import { readCount, readFieldOf, writeIfPresent } from "./group-files.ts";
import type { MountedHierarchies } from "./mounted-hierarchies.ts";

const CPU_PERIOD_US = 100_000;
const CONTROLLERS = ["memory", "cpu", "pids"] as const;

/** Groups with limits in the one hierarchy; `undefined` where this process may not make them. */
export async function openVersion2Tree(
  hierarchies: MountedHierarchies,
  serverName: string,
): Promise<ControlGroupTree | undefined> {
  if (hierarchies.v2 === undefined) return undefined;
  const { mountPoint, ownFolder } = hierarchies.v2;
  const isMachineRoot = !(await isThere(join(mountPoint, "cgroup.type")));
  // Root of the machine may hold processes and divide its controllers at once, as no other group may.
  const parent = isMachineRoot && process.getuid?.() === 0 ? mountPoint : ownFolder;
  if (!(await hasControllers(join(parent, "cgroup.controllers")))) return undefined;
  const folder = join(parent, serverName);
  try {
    await mkdir(folder, { recursive: true });
    if (parent !== mountPoint || !isMachineRoot) await leaveForLeaf(parent);
    await enableControllers(parent);
    await enableControllers(folder);
  } catch {
    // Not delegated to this user, or other processes stay in the group.
    return undefined;
  }
  return {
    version: 2,
    folders: [folder],
    create: async (id, resources) => await createGroup(join(folder, id), resources),
  };
}

/** A group that divides its controllers may hold no process: the server, and what started beside it, move to a leaf. */
async function leaveForLeaf(parent: string): Promise<void> {
  const leaf = join(parent, "owlclaw-servers");
  await mkdir(leaf, { recursive: true });
  const ids = (await readFile(join(parent, "cgroup.procs"), "utf8")).split("\n").filter((line) => line !== "");
  for (const id of ids) {
    // A process that has ended meanwhile has left the group as well.
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

export async function createGroup(folder: string, resources: Resources): Promise<ControlGroup> {
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
