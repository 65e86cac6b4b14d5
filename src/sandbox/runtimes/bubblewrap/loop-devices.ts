import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/**
 * How long the last process of a sandbox may take to end, and its disk to be let go of. The kernel writes down what is
 * left to write within the exit of that process, which stays in its control group until then.
 */
export const LET_GO_TIMEOUT_MS = 60_000;
const MAX_PAUSE_MS = 50;
const BLOCK_DEVICES = "/sys/block";

/**
 * Waits until no disk image below the folder is behind a loop device. The kernel lets go of one when the last process
 * that sees it has ended, but first writes down what is left to write: on a busy disk that takes its time.
 */
export async function waitUntilDetached(folder: string, timeoutMs: number = LET_GO_TIMEOUT_MS): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    const disks = await attachedDisks();
    if (!disks.some(({ file }) => file.startsWith(`${folder}/`))) return true;
    if (performance.now() > deadline) return false;
    await delay(pauseMs);
  }
}

export interface AttachedDisk {
  readonly device: string;
  readonly file: string;
}

export async function attachedDisks(): Promise<AttachedDisk[]> {
  const names = await readdir(BLOCK_DEVICES).catch(() => []);
  const disks = names
    .filter((name) => name.startsWith("loop"))
    .map(async (name) => {
      const file = await readFile(join(BLOCK_DEVICES, name, "loop", "backing_file"), "utf8").catch(() => "");
      return { device: `/dev/${name}`, file: file.trim() };
    });
  return await Promise.all(disks);
}
