import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Resources } from "../../runtime.ts";
import type { ControlGroup, ControlGroupTree } from "./control-group.ts";
import { isMissing, isRefused, makeGroup, readCount, readFieldOf, writeIfPresent } from "./group-files.ts";
import type { MountedHierarchies } from "./mounted-hierarchies.ts";

const CPU_PERIOD_US = 100_000;
const CONTROLLERS = ["memory", "cpu", "pids"] as const;

/** Groups below the server's own, in each controller's hierarchy; `undefined` where that is not allowed. */
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
    // Each on its own: with `recursive`, Node takes a read-only mount for a folder that is missing.
    for (const folder of folders) await makeGroup(folder);
  } catch (error) {
    // Not ours to divide: an ordinary user, or a container, which has a read-only mount or does not see its own group.
    if (isRefused(error) || isMissing(error)) return undefined;
    throw error;
  }
  return { version: 1, folders, create: async (id, resources) => await createGroup({ roots, id, resources }) };
}

async function createGroup(options: {
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
  // Absent where the kernel does not account for swap; without swap on the machine it makes no difference.
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
