import { readFile } from "node:fs/promises";
import type { CellUsage } from "../runtime.ts";

const PAGE_BYTES = 4096;
const MS_PER_TICK = 10;

/** What a process and all below it use, for cells that have no control group; shared pages count more than once. */
export async function processTreeUsage(rootPid: number): Promise<CellUsage> {
  const usage = { memoryBytes: 0, cpuMs: 0, pids: 0 };
  const pending = [rootPid];
  for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
    const [stat, children] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "utf8").catch(() => ""),
      readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => ""),
    ]);
    // Ended meanwhile.
    if (stat === "") continue;
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    usage.cpuMs += ((fields[11] ?? 0) + (fields[12] ?? 0)) * MS_PER_TICK;
    usage.pids += fields[17] ?? 0;
    usage.memoryBytes += (fields[21] ?? 0) * PAGE_BYTES;
    pending.push(
      ...children
        .split(" ")
        .filter((part) => part !== "")
        .map(Number),
    );
  }
  return usage;
}
