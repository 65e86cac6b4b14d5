import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import { isThere } from "../is-there.ts";
import { draftName } from "../replace-file.ts";
import { runTool } from "../run-tool.ts";

const MKFS_TIMEOUT_MS = 30_000;

/** Formatted empty disks, one per size: a copy of a sparse file is made in a few milliseconds, a new file system in many. */
export interface DiskImages {
  /** Puts an empty disk at the path, unless one is there already. */
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

/** Several servers may share the data folder: each formats under a name of its own, and the last rename wins. */
async function formatOnce(folder: string, sizeBytes: number): Promise<string> {
  const path = join(folder, `empty-${sizeBytes}.img`);
  if (await isThere(path)) return path;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = draftName(path);
  const file = await open(draft, "w", 0o600);
  await file.truncate(sizeBytes);
  await file.close();
  // Without a journal: it would take a part of a small disk, and a workspace does not outlive a crash of the machine.
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
