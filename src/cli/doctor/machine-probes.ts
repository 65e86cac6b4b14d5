import { accessSync, constants, statSync, existsSync, readFileSync } from "node:fs";
import { version } from "node:os";
import { delimiter, join } from "node:path";
import { userEnvironment } from "../../config/environment.ts";
import { type DoctorCheck, type DoctorProbe, failed, ok, warning } from "./check.ts";
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { promisify } from "node:util";

const OLDEST_NODE = [20, 19] as const;

interface Program {
  readonly name: string;
  /** One of these must be on the PATH. */
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

/** Whether sandboxes use the programs of the host: always (bubblewrap), only if no other runtime works, or never. */
export type HostUse = "needed" | "possible" | "none";

/** Checks what the machine must have, independent of the rest of the configuration. */
export function machineProbes(use: HostUse, dataFolder?: string): readonly DoctorProbe[] {
  const looks: DoctorProbe[] = [
    { look: async () => [nodeVersion(process.versions.node)] },
    serverModeProbe(),
    clockProbe(dataFolder),
  ];
  if (use === "none") return looks;
  // With `possible`, another runtime may work: its own row says whether it does.
  const soften = (check: DoctorCheck): DoctorCheck =>
    use === "possible" && check.status === "failed" ? { ...check, status: "warning" } : check;
  return [...looks, { look: async () => [...kernelFaults(version()), ...PROGRAMS.map(program).map(soften)] }];
}

/**
 * The kernel of Debian 6.1.192-1 dereferences a null pointer when a sandbox that runs out of memory makes it drop its
 * cache of free blocks of a workspace's disk. Writes to that disk then hang.
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

const DAY_MS = 86_400_000;
/** Time services correct the clock in smaller steps than this. */
const TOLERANCE_MS = 60_000;
const ASK_TIMEOUT_MS = 5000;
const RECORDS = ["ledger.db", "ledger.db-wal"];

const NAMED = { category: "machine", name: "clock" } as const;
const FIX = "set the clock, best with a time service: timedatectl set-ntp true";

/** Facts to check the clock against without a network request. */
export interface ClockFacts {
  readonly nowMs: number;
  readonly installedAtMs: number;
  /** When the server last wrote to its data folder. */
  readonly recordedAtMs?: number | undefined;
  /** Whether a time service synchronizes the clock; undefined: unknown. */
  readonly isKept?: boolean | undefined;
}

/** @param dataFolder The data folder of the server; undefined when the configuration is not known. */
export function clockProbe(dataFolder: string | undefined): DoctorProbe {
  return {
    async look() {
      // Packages from a registry have an mtime in 1985. The ctime is the time of the installation, and programs cannot
      // set it.
      const { ctimeMs } = await stat(new URL("../../../package.json", import.meta.url));
      const recordedAtMs = dataFolder === undefined ? undefined : await newestRecord(dataFolder);
      return [clockCheck({ nowMs: Date.now(), installedAtMs: ctimeMs, recordedAtMs, isKept: await isKept() })];
    },
  };
}

/**
 * A wrong clock falsifies times in the ledger, ends budget periods early or late, and makes the server reject valid
 * tokens.
 */
export function clockCheck({ nowMs, installedAtMs, recordedAtMs, isKept }: ClockFacts): DoctorCheck {
  const says = `the clock says ${new Date(nowMs).toISOString()}`;
  if (nowMs < installedAtMs - DAY_MS) return failed(NAMED, `${says}, which is before this program was installed`, FIX);
  if (recordedAtMs !== undefined && nowMs < recordedAtMs - TOLERANCE_MS) {
    const written = new Date(recordedAtMs).toISOString();
    return failed(NAMED, `${says}, and the server's records were written at ${written}`, FIX);
  }
  if (isKept === false) return warning(NAMED, `${says}; no time service has set it`, FIX);
  return ok(NAMED, isKept === true ? `${says}, kept by a time service` : says);
}

async function newestRecord(folder: string): Promise<number | undefined> {
  const found = await Promise.all(RECORDS.map((name) => stat(join(folder, name)).catch(() => undefined)));
  const times = found.flatMap((file) => (file === undefined ? [] : [file.mtimeMs]));
  return times.length === 0 ? undefined : Math.max(...times);
}

/** The kernel knows the state, and systemd reports it. Without systemd the state is unknown. */
async function isKept(): Promise<boolean | undefined> {
  const args = ["show", "--property=NTPSynchronized", "--value"];
  const options = { timeout: ASK_TIMEOUT_MS, encoding: "utf8" } as const;
  const answer = await promisify(execFile)("timedatectl", args, options).catch(() => undefined);
  const word = answer?.stdout.trim();
  return word === "yes" ? true : word === "no" ? false : undefined;
}

/** What the process can observe about its environment. */
export interface Surroundings {
  readonly platform: NodeJS.Platform;
  /** Absent on platforms without numeric user ids. */
  readonly uid: number | undefined;
  readonly exists: (path: string) => boolean;
  /** Returns an empty text when the file does not exist. */
  readonly read: (path: string) => string;
}

const PLATFORMS: Partial<Record<NodeJS.Platform, string>> = { darwin: "macOS", win32: "Windows", linux: "Linux" };
/** Files that container engines create in every container. */
const CONTAINER_MARKS = ["/.dockerenv", "/run/.containerenv"];
const CONTAINER_GROUP = /docker|kubepods|libpod|containerd|lxc/;
const CONTAINER_VARIABLE = /(^|\0)container=/;

/** Reports where the server runs, in the words of the table in docs/runtimes.md. */
export function serverModeProbe(): DoctorProbe {
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
    // Not every user may read the files of process 1. An unreadable file counts as empty.
    return "";
  }
}
