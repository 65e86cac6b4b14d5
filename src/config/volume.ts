import { realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { isFreeGuestPath } from "./value-rules.ts";

/** A folder of the host that is mounted into sandboxes. */
export interface VolumeSetting {
  readonly hostPath: string;
  readonly guestPath: string;
  readonly isReadOnly: boolean;
}

const WITH_GUEST = /^(.+?):(\/[^:]*)(:ro|:rw)?$/s;
const KERNEL_FOLDERS = ["/proc", "/sys", "/dev", "/run"];

/** Parses `host`, which mounts at the workspace, `host:guest` and `host:guest:ro`. The host path may contain colons. */
export function parseVolume(text: string, workspacePath: string): VolumeSetting {
  const match = WITH_GUEST.exec(text);
  if (match === null) return { hostPath: text, guestPath: workspacePath, isReadOnly: false };
  const [, hostPath = "", guestPath = "", mode] = match;
  return { hostPath, guestPath, isReadOnly: mode === ":ro" };
}

export function isVolume(text: string): boolean {
  return text !== "" && !text.includes("\0");
}

export function resolveVolume(folder: string, text: string): string {
  if (text === "") return text;
  const { hostPath } = parseVolume(text, "");
  return `${resolve(folder, hostPath)}${text.slice(hostPath.length)}`;
}

export interface VolumeSurroundings {
  /** The server's data folder, and the folder with the trusted configurations of this user. */
  readonly dataFolders: readonly string[];
  readonly workspacePath: string;
}

/** Throws with the reason when the folder must not be mounted, or not at this path. */
export function checkVolume(
  { hostPath, guestPath }: VolumeSetting,
  { dataFolders, workspacePath }: VolumeSurroundings,
): void {
  const isWorkspace = guestPath === workspacePath;
  if (!isWorkspace && (!isFreeGuestPath(guestPath) || overlaps(guestPath, workspacePath)))
    throw new Error(`it cannot appear at ${guestPath}: choose ${workspacePath} itself, or a path such as /data`);
  if (!isAbsolute(hostPath)) throw new Error("the folder of this machine must be an absolute path");
  if (statSync(hostPath, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new Error(`there is no folder ${hostPath}`);
  const real = realpathSync(hostPath);
  if (real === "/") throw new Error("it would show the whole machine");
  if (KERNEL_FOLDERS.some((folder) => real === folder || real.startsWith(folder + sep)))
    throw new Error("it belongs to the kernel");
  if (dataFolders.some((folder) => overlaps(real, realOf(folder))))
    throw new Error("it would show the server's own data folder");
}

/** Resolves symbolic links, also when the end of the path does not exist yet. */
export function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realOf(parent), basename(path));
  }
}

function overlaps(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}
