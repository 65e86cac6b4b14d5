import { readdir, readFile } from "node:fs/promises";
import type { InstanceUsage } from "./runtime.ts";

const PAGE_BYTES = 4096;
const MS_PER_TICK = 10;

/** A process and its descendants. Processes that exit meanwhile may be missing. */
export async function processTree(rootPid: number): Promise<readonly number[]> {
  const found: number[] = [];
  const pending = [rootPid];
  for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
    found.push(pid);
    pending.push(...(await childrenOf(pid)));
  }
  return found;
}

/** Linux lists children by the thread that started them. */
async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "utf8").catch(() => "")),
  );
  return lists.flatMap((list) =>
    list
      .split(" ")
      .filter((part) => part !== "")
      .map(Number),
  );
}

/** What a process and its descendants use, for instances without a control group. Shared pages count more than once. */
export async function processTreeUsage(rootPid: number): Promise<InstanceUsage> {
  const usage = { memoryBytes: 0, cpuMs: 0, pids: 0 };
  for (const pid of await processTree(rootPid)) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    // It has exited.
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
