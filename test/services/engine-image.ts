import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const CACHE = resolve(import.meta.dirname, "../../.cache");

/** What docs/runtimes.md asks of an image, what the attacks need, and pictures. No Node: that of this machine is put in. */
const PACKAGES = ["python3", "git", "procps", "libstdc++6", "busybox-static", "bubblewrap", "python3-pil"];

/** A small Debian as a tar file, with more packages where a test needs them, made once without a registry and kept for the next run. */
export async function engineImage(more: readonly string[] = []): Promise<string> {
  const packages = [...PACKAGES, ...more];
  const digest = createHash("sha256").update(JSON.stringify(packages)).digest("hex").slice(0, 12);
  const image = join(CACHE, `engine-image-${process.arch}-${digest}.tar`);
  if (existsSync(image)) return image;
  mkdirSync(CACHE, { recursive: true });
  const fresh = `${image}-${process.pid}.tar`;
  try {
    await run("mmdebstrap", ["--quiet", "--variant=minbase", `--include=${packages.join(",")}`, "bookworm", fresh]);
    renameSync(fresh, image);
  } finally {
    rmSync(fresh, { force: true });
  }
  return image;
}
