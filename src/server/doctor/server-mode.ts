import { existsSync, readFileSync } from "node:fs";
import { type DoctorCheck, type DoctorLook, ok } from "./check.ts";

/** What can be seen of the place where this process runs. */
export interface Surroundings {
  readonly platform: NodeJS.Platform;
  /** Absent where users have no numbers. */
  readonly uid: number | undefined;
  readonly exists: (path: string) => boolean;
  /** Empty when there is no such file. */
  readonly read: (path: string) => string;
}

const PLATFORMS: Partial<Record<NodeJS.Platform, string>> = { darwin: "macOS", win32: "Windows", linux: "Linux" };
/** Files that engines put into every container. */
const CONTAINER_MARKS = ["/.dockerenv", "/run/.containerenv"];
const CONTAINER_GROUP = /docker|kubepods|libpod|containerd|lxc/;
const CONTAINER_VARIABLE = /(^|\0)container=/;

/** Where the server runs, in the words of the table in docs/runtimes.md. */
export function serverModeLook(): DoctorLook {
  return {
    look: async () => [
      serverMode({
        platform: process.platform,
        uid: process.getuid?.(),
        exists: existsSync,
        read: readOrEmpty,
      }),
    ],
  };
}

export function serverMode(found: Surroundings): DoctorCheck {
  const { platform, uid } = found;
  const system = PLATFORMS[platform] ?? platform;
  const user = uid === undefined ? "" : uid === 0 ? " as root" : ` as user ${uid}`;
  return ok({ category: "machine", name: "mode" }, `${placeOf(found)} ${system}${user}`);
}

function placeOf(found: Surroundings): string {
  if (found.platform !== "linux") return "on";
  if (isInContainer(found)) return "in a container on";
  return /microsoft/i.test(found.read("/proc/version")) ? "in WSL on" : "on";
}

function isInContainer({ exists, read }: Surroundings): boolean {
  if (CONTAINER_MARKS.some((path) => exists(path))) return true;
  return CONTAINER_VARIABLE.test(read("/proc/1/environ")) || CONTAINER_GROUP.test(read("/proc/1/cgroup"));
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Not every user may read everything of the first process; there is nothing to learn then.
    return "";
  }
}
