import { accessSync, constants, statSync } from "node:fs";
import { version } from "node:os";
import { delimiter, join } from "node:path";
import { userEnvironment } from "../../config/user-environment.ts";
import { type DoctorCheck, type DoctorLook, failed, ok, warning } from "./check.ts";
import { clockLook } from "./clock-look.ts";
import { serverModeLook } from "./server-mode.ts";

const OLDEST_NODE = [20, 19] as const;

interface Program {
  readonly name: string;
  /** Any of these on the PATH will do. */
  readonly commands: readonly string[];
  readonly packageName: string;
  readonly purpose: string;
  readonly isNeeded: boolean;
}

const PROGRAMS: readonly Program[] = [
  { name: "bubblewrap", commands: ["bwrap"], packageName: "bubblewrap", purpose: "sandboxes", isNeeded: true },
  { name: "python3", commands: ["python3"], packageName: "python3", purpose: "Python in sandboxes", isNeeded: true },
  { name: "git", commands: ["git"], packageName: "git", purpose: "git in sandboxes", isNeeded: false },
  { name: "e2fsprogs", commands: ["mkfs.ext4"], packageName: "e2fsprogs", purpose: "disk limits", isNeeded: false },
  {
    name: "chromium",
    commands: ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"],
    packageName: "chromium",
    purpose: "browsers in sandboxes",
    isNeeded: false,
  },
];

/** Whether sandboxes live from what this machine has: they must, they may if nothing else is there, or they never do. */
export type HostUse = "needed" | "possible" | "none";

/** What the machine must have, whatever else the configuration says. */
export function machineLooks(use: HostUse, dataFolder?: string): readonly DoctorLook[] {
  const looks: DoctorLook[] = [
    { look: async () => [nodeVersion(process.versions.node)] },
    serverModeLook(),
    clockLook(dataFolder),
  ];
  if (use === "none") return looks;
  // Where another runtime may do the work, that row says whether one does.
  const soften = (check: DoctorCheck): DoctorCheck =>
    use === "possible" && check.status === "failed" ? { ...check, status: "warning" } : check;
  return [...looks, { look: async () => [...kernelFaults(version()), ...PROGRAMS.map(program).map(soften)] }];
}

/**
 * Debian's 6.1.192-1 reads through a null pointer when a sandbox that runs out of memory makes the kernel forget what it
 * knew of the free blocks of a workspace's disk: what is written there then hangs.
 */
export function kernelFaults(kernel: string): readonly DoctorCheck[] {
  const [named] = /Debian 6\.1\.192-1(?!\d)/.exec(kernel) ?? [];
  if (named === undefined) return [];
  const message = `the kernel ${named} fails when a sandbox runs out of memory: its disk may hang until the machine restarts`;
  const fix = "boot another one: apt-get update && apt-get upgrade, or the kernel before it";
  return [warning({ category: "machine", name: "kernel" }, message, fix)];
}

export function nodeVersion(version: string): DoctorCheck {
  const named = { category: "machine", name: "node" } as const;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
  const message = `Node.js ${version}`;
  return isOld
    ? failed(named, `${message} is too old`, `install Node.js ${OLDEST_NODE.join(".")} or newer`)
    : ok(named, message);
}

function program({ name, commands, packageName, purpose, isNeeded }: Program): DoctorCheck {
  const named = { category: "programs", name } as const;
  const found = commands.map(onPath).find((path) => path !== undefined);
  if (found !== undefined) return ok(named, found);
  const message = `${commands[0] ?? name} is not on the PATH, and ${purpose} need${purpose.endsWith("s") ? "" : "s"} it`;
  const fix = `install it: apt-get install ${packageName}`;
  return isNeeded ? failed(named, message, fix) : warning(named, message, fix);
}

function onPath(command: string): string | undefined {
  const folders = [...userEnvironment().searchPath.split(delimiter), "/usr/sbin", "/sbin"];
  return folders.map((folder) => join(folder, command)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
