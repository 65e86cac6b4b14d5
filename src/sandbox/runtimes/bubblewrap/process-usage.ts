import { readFile } from "node:fs/promises";
import type { InstanceUsage } from "../runtime.ts";
import { processTree } from "../process-tree.ts";

const PAGE_BYTES = 4096;
const MS_PER_TICK = 10;

/** What a process and all below it use, for cells that have no control group; shared pages count more than once. */
export async function processTreeUsage(rootPid: number): Promise<InstanceUsage> {
  const usage = { memoryBytes: 0, cpuMs: 0, pids: 0 };
  for (const pid of await processTree(rootPid)) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    // Ended meanwhile.
    if (stat === "") continue;
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    usage.cpuMs += ((fields[11] ?? 0) + (fields[12] ?? 0)) * MS_PER_TICK;
    usage.pids += fields[17] ?? 0;
    usage.memoryBytes += (fields[21] ?? 0) * PAGE_BYTES;
  }
  return usage;
}
