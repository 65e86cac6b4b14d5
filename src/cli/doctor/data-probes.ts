import { chmod, mkdir, stat, statfs } from "node:fs/promises";
import type { Config } from "../../config/schema.ts";
import { FLAVORS } from "../../sandbox/flavors.ts";
import { type DoctorCheck, type DoctorProbe, failed, ok, warning } from "./check.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { PlannedVolume } from "../../config/plan-volumes.ts";
import { findSpecialFiles } from "../../sandbox/opened-volumes.ts";

const MEGABYTE = 1024 * 1024;
const LOW_FREE_MB = 1000;
const OTHERS = 0o077;

/** Checks the data folder and its disk. */
export function dataProbes({ sandbox }: Config): readonly DoctorProbe[] {
  const { root } = sandbox;
  return [
    { look: async () => [await dataFolder(root)], repair: () => repairFolder(root) },
    { look: async () => [await disk(sandbox)] },
  ];
}

async function dataFolder(root: string): Promise<DoctorCheck> {
  const named = { category: "data", name: "data folder" } as const;
  const found = await stat(root).catch(() => undefined);
  if (found === undefined)
    return warning(named, `${root} is not there yet`, "it is made at the first start; --fix makes it now");
  if (!found.isDirectory())
    return failed(named, `${root} is no folder`, "move it away, or set SANDBOX_ROOT to another place");
  if ((found.mode & OTHERS) !== 0)
    return warning(named, `other users can look into ${root}`, `run: chmod 700 ${root}; --fix does it`);
  return ok(named, root);
}

async function repairFolder(root: string): Promise<string | undefined> {
  const found = await stat(root).catch(() => undefined);
  if (found === undefined) {
    await mkdir(root, { recursive: true, mode: 0o700 });
    return `made ${root}`;
  }
  if (!found.isDirectory() || (found.mode & OTHERS) === 0) return undefined;
  await chmod(root, 0o700);
  return `closed ${root} to other users`;
}

async function disk({ root, enabled, flavor, diskReserveMb }: Config["sandbox"]): Promise<DoctorCheck> {
  const named = { category: "data", name: "disk space" } as const;
  const found = await statfs(root).catch(() => undefined);
  if (found === undefined) return ok(named, "nothing is written yet");
  const freeMb = Math.floor((found.bavail * found.bsize) / MEGABYTE);
  const message = `${freeMb} MiB are free`;
  const needsMb = diskReserveMb + FLAVORS[flavor].diskBytes / MEGABYTE;
  if (enabled && freeMb < needsMb) {
    const why = `a sandbox (${flavor}) starts with ${needsMb} MiB free: its workspace and sandbox.diskReserveMb`;
    return warning(named, `${message}; ${why}`, "free space on the disk of the data folder, or use another one");
  }
  return freeMb < LOW_FREE_MB
    ? warning(named, message, "make room: sandboxes and the ledger need it")
    : ok(named, message);
}

/**
 * Warns about files and runtimes that weaken the protection of mounted folders. A folder that cannot be protected at
 * all is a configuration error.
 */
export function volumeProbes({ config, volumes }: Pick<LoadedConfig, "config" | "volumes">): readonly DoctorProbe[] {
  const isOthersEngine = config.sandbox.runtime === "docker" && process.getuid?.() !== 0;
  return volumes.map((volume) => ({
    look: async () => [await checkVolume(volume, isOthersEngine)],
  }));
}

async function checkVolume(volume: PlannedVolume, isOthersEngine: boolean): Promise<DoctorCheck> {
  const { hostPath, protectedPaths, isReadOnly } = volume;
  const named = { category: "isolation", name: `mounted folder ${hostPath}` } as const;
  const { paths } = await findSpecialFiles(hostPath);
  if (paths.length > 0) {
    const fix =
      "remove them, or mount a folder without them: they connect sandboxes with each other and with this machine";
    return warning(named, `it holds sockets or FIFOs, such as ${paths[0]}`, fix);
  }
  if (isOthersEngine && !isReadOnly) {
    const message =
      "the engine mounts it by name, and this user may not look into containers to compare what was mounted";
    return warning(
      named,
      message,
      "let no other program rename folders above it while sandboxes start, or run the server as root",
    );
  }
  const kept = protectedPaths.filter(({ access }) => access !== "pinned").length;
  return ok(named, isReadOnly ? "read-only" : `${kept} paths in it are protected`);
}
