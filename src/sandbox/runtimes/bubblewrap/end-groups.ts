import { readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { LET_GO_TIMEOUT_MS } from "./loop-devices.ts";

const MAX_PAUSE_MS = 20;

/** Ends every process in a cell's control groups, and removes the groups. `false`: something would not end in time. */
export async function endGroups(folders: readonly string[], timeoutMs: number = LET_GO_TIMEOUT_MS): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    const removed = await Promise.all(folders.map(async (folder) => await killAndRemove(folder)));
    if (removed.every(Boolean)) return true;
    if (performance.now() > deadline) return false;
    await delay(pauseMs);
  }
}

/** The same for a server's own groups, with whatever is left below them. */
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
    if (isGone(error)) return true;
  }
  // Version 2 ends all at once; elsewhere the file does not exist, and the list below is walked until it is empty.
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
    // It ended by itself.
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
