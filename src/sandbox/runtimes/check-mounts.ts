import { lstat, readFile } from "node:fs/promises";
import { OwlError } from "../../errors/owl-error.ts";
import type { InstanceMount } from "./instance-mounts.ts";

/**
 * Compares what a process sees with what the server opened. The folders were mounted by name or by descriptor, and a program
 * on this machine that may write above them could have exchanged a name in that moment.
 */
export async function checkMounts(pid: number, mounts: readonly InstanceMount[]): Promise<void> {
  const opened = mounts.filter((mount) => mount.opened !== undefined);
  if (opened.length === 0) return;
  const mounted = mountPoints(await readFile(`/proc/${pid}/mountinfo`, "utf8"));
  for (const mount of opened) {
    const { dev, ino } = await lstat(`/proc/${pid}/root${mount.guestPath}`, { bigint: true });
    const isSame = dev === mount.opened?.dev && ino === mount.opened.ino;
    const options = mounted.get(mount.guestPath);
    if (isSame && options !== undefined && (!mount.isReadOnly || options.includes("ro"))) continue;
    throw new OwlError(
      "sandbox_unavailable",
      `${mount.guestPath} of the sandbox is not the folder that was configured`,
      {
        hint: "Another program exchanged it while the sandbox started. Try again.",
      },
    );
  }
}

/** The options of each mount point; the last mount on a point is the one that counts. */
function mountPoints(mountinfo: string): ReadonlyMap<string, readonly string[]> {
  const points = mountinfo.split("\n").map((line): [string, readonly string[]] => {
    const [, , , , point = "", options = ""] = line.split(" ");
    const unescaped = point.replaceAll(/\\([0-7]{3})/g, (_all, code: string) =>
      String.fromCharCode(Number.parseInt(code, 8)),
    );
    return [unescaped, options.split(",")];
  });
  return new Map(points);
}
