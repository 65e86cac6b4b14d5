import { readFile, readdir } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 50;
/** Linux counts CPU time in hundredths of a second for everybody. */
const TICKS_PER_SECOND = 100;

/** Every process below the one given. */
export async function descendants(root: number): Promise<readonly number[]> {
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const parents = new Map(await Promise.all(pids.map(async (pid) => [pid, await parentOf(pid)] as const)));
  const found = new Set([root]);
  let before = 0;
  while (found.size !== before) {
    before = found.size;
    for (const [pid, parent] of parents) if (parent !== undefined && found.has(parent)) found.add(pid);
  }
  found.delete(root);
  return [...found];
}

/** Shared pages count in parts, so that the sum is what the machine really gives. */
export async function pssMegabytes(pids: readonly number[]): Promise<number> {
  const sizes = await Promise.all(pids.map(pssKilobytes));
  return sizes.reduce((sum, kilobytes) => sum + kilobytes, 0) / 1024;
}

export async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readOrEmpty(`/proc/${pid}/stat`);
  // The second field is the program's name, which may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS_PER_SECOND;
}

/** Waits until no process below has come or gone for so long. */
export async function settled(root: number, quietMs: number): Promise<void> {
  let seen = "";
  for (let quietSince = Date.now(); Date.now() - quietSince < quietMs; await delay(POLL_MS)) {
    const now = (await descendants(root)).join(" ");
    if (now !== seen) quietSince = Date.now();
    seen = now;
  }
}

async function parentOf(pid: number): Promise<number | undefined> {
  const stat = await readOrEmpty(`/proc/${pid}/stat`);
  const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  return Number.isNaN(parent) ? undefined : parent;
}

async function pssKilobytes(pid: number): Promise<number> {
  const rollup = await readOrEmpty(`/proc/${pid}/smaps_rollup`);
  return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0);
}

/** A process may end between the list and the look. */
async function readOrEmpty(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
