import { randomBytes } from "node:crypto";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import type { DiskImages } from "../bubblewrap/disk-image.ts";
import { runTool } from "../run-tool.ts";

const COPY_TIMEOUT_MS = 300_000;
const DISK = /^workspace-[0-9a-f]{8}\.img$/;

/**
 * The disk of a workspace, under a new name for each machine: microsandbox keeps its hold on a disk for as long as the
 * server runs, even when the machine on it is gone. What was on the one before is copied; empty space takes no time.
 */
export async function provideDisk(disks: DiskImages, folder: string, sizeBytes: number): Promise<string> {
  const before = (await readdir(folder)).find((name) => DISK.test(name));
  const path = join(folder, `workspace-${randomBytes(4).toString("hex")}.img`);
  if (before === undefined) {
    await disks.provide(path, sizeBytes);
    return path;
  }
  const draft = `${path}.new`;
  const args = ["--reflink=auto", "--sparse=always", "--", join(folder, before), draft];
  const { code, stderr } = await runTool({ command: "cp", args, timeoutMs: COPY_TIMEOUT_MS });
  if (code !== 0) {
    await rm(draft, { force: true });
    throw new OwlError("sandbox_unavailable", `cannot copy the disk of a workspace: ${stderr.trim()}`, {
      retryable: true,
      hint: "Free space in the data folder; then call again.",
    });
  }
  // In this order, a crash leaves one of them whole.
  await rename(draft, path);
  await rm(join(folder, before), { force: true });
  return path;
}
