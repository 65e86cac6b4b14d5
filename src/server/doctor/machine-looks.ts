import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { userEnvironment } from "../../config/user-environment.ts";
import { type DoctorCheck, type DoctorLook, failed, ok, warning } from "./check.ts";
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
export function machineLooks(use: HostUse): readonly DoctorLook[] {
  const looks: DoctorLook[] = [
    { look: async () => [nodeVersion(process.versions.node)] },
    serverModeLook(),
    { look: async () => [clock()] },
  ];
  if (use === "none") return looks;
  // Where another runtime may do the work, that row says whether one does.
  const soften = (check: DoctorCheck): DoctorCheck =>
    use === "possible" && check.status === "failed" ? { ...check, status: "warning" } : check;
  return [...looks, { look: async () => [...PROGRAMS.map(program), userNamespaces(readSetting)].map(soften) }];
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

/** A clock that stands before this very program was written gives wrong times to records, and refuses good tokens. */
function clock(): DoctorCheck {
  const named = { category: "machine", name: "clock" } as const;
  // Files from a registry say that they were written in 1985; when they came to this disk, nobody can set.
  const installedAtMs = statSync(new URL("../../../package.json", import.meta.url)).ctimeMs;
  const now = new Date();
  if (now.getTime() >= installedAtMs - 86_400_000) return ok(named, `the clock says ${now.toISOString()}`);
  return failed(
    named,
    `the clock says ${now.toISOString()}, which is before this program was installed`,
    "set the clock, best with a time service: timedatectl set-ntp true",
  );
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

type ReadSetting = (path: string) => string | undefined;

const APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
const CLONE = "/proc/sys/kernel/unprivileged_userns_clone";
const MOST = "/proc/sys/user/max_user_namespaces";

/** Without them bubblewrap cannot isolate anything; distributions take them away in three ways. */
export function userNamespaces(read: ReadSetting, isRoot: boolean = process.getuid?.() === 0): DoctorCheck {
  const named = { category: "isolation", name: "user namespaces" } as const;
  if (read(MOST) === "0")
    return failed(named, "the kernel allows no user namespaces", "run: sysctl user.max_user_namespaces=15000");
  if (!isRoot && read(APPARMOR) === "1") {
    return failed(
      named,
      "AppArmor keeps programs from using user namespaces (Ubuntu 23.10 and newer)",
      "add an AppArmor profile for /usr/bin/bwrap with `userns,`, or run: sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    );
  }
  if (!isRoot && read(CLONE) === "0")
    return failed(named, "only root may use user namespaces", "run: sysctl kernel.unprivileged_userns_clone=1");
  return ok(named, "programs may use user namespaces");
}

function readSetting(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}
