import { mkdir, open, rename, rm, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import { draftName, isThere } from "../host-files.ts";
import { runTool } from "../run-tool.ts";
import { setTimeout as delay } from "node:timers/promises";

const MKFS_TIMEOUT_MS = 30_000;
/**
 * How long the last process of a sandbox may take to exit and its disk to be detached. The kernel flushes the disk during
 * the exit of that process, which stays in its control group until then.
 */
export const DETACH_TIMEOUT_MS = 60_000;
const MAX_PAUSE_MS = 50;
const BLOCK_DEVICES = "/sys/block";

/** Formatted empty disks, one per size: to copy a sparse file is faster than to format a file system. */
export interface DiskImages {
  /** Copies an empty disk to the path, unless a file exists there. */
  provide(path: string, sizeBytes: number): Promise<void>;
}

export function createDiskImages(folder: string): DiskImages {
  const pending = new Map<number, Promise<string>>();
  const formatted = async (sizeBytes: number): Promise<string> => {
    const known = pending.get(sizeBytes) ?? formatOnce(folder, sizeBytes);
    pending.set(sizeBytes, known);
    try {
      return await known;
    } catch (error) {
      pending.delete(sizeBytes);
      throw error;
    }
  };
  return {
    provide: async (path, sizeBytes) => {
      if (await isThere(path)) return;
      const source = await formatted(sizeBytes);
      const copied = await runTool({
        command: "cp",
        args: ["--reflink=auto", "--sparse=always", "--", source, `${path}.new`],
        timeoutMs: MKFS_TIMEOUT_MS,
      });
      if (copied.code !== 0) throw new OwlError("internal", `cannot make a workspace disk: ${copied.stderr.trim()}`);
      await rename(`${path}.new`, path);
    },
  };
}

/** Several servers may share the data folder: each formats under its own name, and the last rename wins. */
async function formatOnce(folder: string, sizeBytes: number): Promise<string> {
  const path = join(folder, `empty-${sizeBytes}.img`);
  if (await isThere(path)) return path;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = draftName(path);
  const file = await open(draft, "w", 0o600);
  await file.truncate(sizeBytes);
  await file.close();
  // Without a journal: it takes space of a small disk, and a workspace does not survive a crash of the machine.
  const features = ["-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard,root_owner=0:0", "-m", "0"];
  const made = await runTool({
    command: "mkfs.ext4",
    args: ["-q", "-F", ...features, draft],
    timeoutMs: MKFS_TIMEOUT_MS,
  });
  if (made.code !== 0) {
    await rm(draft, { force: true });
    throw new OwlError("internal", `cannot format a workspace disk: ${made.stderr.trim()}`, {
      hint: "Install e2fsprogs, or set sandbox.limits to best-effort.",
    });
  }
  await rename(draft, path);
  return path;
}

/**
 * Waits until no disk image below the folder is attached to a loop device. The kernel detaches it when the last process that
 * sees it has exited, and flushes it first, which takes long on a busy disk.
 */
export async function waitUntilDetached(folder: string, timeoutMs: number = DETACH_TIMEOUT_MS): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    const disks = await attachedDisks();
    if (!disks.some(({ file }) => file.startsWith(`${folder}/`))) return true;
    if (performance.now() > deadline) return false;
    await delay(pauseMs);
  }
}

interface AttachedDisk {
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
