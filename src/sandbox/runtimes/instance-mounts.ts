import { readlinkSync } from "node:fs";
import { realpath, stat, lstat, readFile, chmod, mkdir, writeFile } from "node:fs/promises";
import { posix, join } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";
import { hasCode } from "./host-files.ts";
import type { OpenedPath, Volume } from "./runtime.ts";

/** Path of the guest and its drivers inside. */
export const GUEST_FOLDER = "/opt/owlclaw";
/** Path of the server's Node inside a container or a machine. */
export const NODE_FOLDER = "/opt/owlclaw-node";
/** Path of the egress proxy's socket inside. */
export const EGRESS_SOCKET = "/run/owlclaw/egress.sock";

/** The relay program and its port, where the socket cannot be mounted. */
export const EGRESS_RELAY: readonly string[] = [`${GUEST_FOLDER}/egress-relay.mjs`, "3128"];

/** A path of the host outside the system tree that is mounted in an instance. */
export interface InstanceMount {
  readonly hostPath: string;
  readonly guestPath: string;
  readonly kind: "folder" | "file";
  readonly isReadOnly: boolean;
  /** The instance's user is mapped to this owner. Only a privileged server can map users. */
  readonly owner?: { readonly uid: number; readonly gid: number };
  /** What the server opened: it is mounted even if another file has the name now. */
  readonly opened?: OpenedPath;
}

const RESERVED = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/etc",
  "/proc",
  "/dev",
  "/sys",
  "/tmp",
  GUEST_FOLDER,
  NODE_FOLDER,
  "/run",
];

interface VolumeSurroundings {
  readonly volumes: readonly Volume[];
  readonly workspacePath: string;
  readonly dataFolder: string;
  /** An empty file and an empty folder, which are mounted over secrets. */
  readonly empty: EmptyPaths;
}

/** The configured volumes with resolved paths. Rejects a mount point that a sandbox could redirect by a link. */
export async function volumeMounts(options: VolumeSurroundings): Promise<InstanceMount[]> {
  const mounts: InstanceMount[] = [];
  for (const volume of options.volumes) {
    const others = [...RESERVED, ...mounts.map((mount) => mount.guestPath)];
    const guestPath = mountPoint(volume, { others, workspacePath: options.workspacePath });
    const source = await mountSource(volume, options);
    mounts.push({ guestPath, kind: "folder", isReadOnly: volume.isReadOnly, ...source });
    mounts.push(...protections(volume, { guestPath, owner: source.owner, empty: options.empty }));
  }
  return mounts;
}

/** Mounts over parts of a volume: files that the server trusts are read-only, and the folders above them cannot be renamed. */
function protections(
  { protectedPaths = [] }: Volume,
  {
    guestPath,
    owner,
    empty,
  }: Pick<InstanceMount, "guestPath"> &
    Pick<VolumeSurroundings, "empty"> & { readonly owner: InstanceMount["owner"] | undefined },
): readonly InstanceMount[] {
  return protectedPaths.map(({ relativePath, kind, access, opened }) => {
    const mount = { guestPath: posix.join(guestPath, relativePath), kind, isReadOnly: access !== "pinned" };
    if (access === "hidden") return { ...mount, hostPath: empty[kind] };
    return { ...mount, hostPath: readlinkSync(opened.procPath), opened, ...(owner !== undefined && { owner }) };
  });
}

function mountPoint(
  { guestPath }: Volume,
  { others, workspacePath }: { readonly others: readonly string[]; readonly workspacePath: string },
): string {
  const target = posix.normalize(guestPath);
  const isInWorkspace = target !== workspacePath && overlaps(target, workspacePath);
  const isFree = !isInWorkspace && !others.some((other) => overlaps(target, other));
  if (target.startsWith("/") && target !== "/" && isFree) return target;
  throw new OwlError("invalid_params", `the volume cannot be mounted at ${guestPath}`, {
    hint: `Choose a path outside ${workspacePath}, /usr, /etc, /tmp, /run and the other volumes, such as /data.`,
  });
}

async function mountSource(
  { hostPath, isOwn = false, opened }: Volume,
  { dataFolder }: VolumeSurroundings,
): Promise<Pick<InstanceMount, "hostPath" | "owner" | "opened">> {
  const real = await realpath(opened?.procPath ?? hostPath).catch(() => undefined);
  const stats = real === undefined ? undefined : await stat(real);
  if (real === undefined || stats?.isDirectory() !== true) {
    throw new OwlError("invalid_params", `the volume's folder ${hostPath} does not exist or is not a folder`);
  }
  if (!isOwn && overlaps(real, await realpath(dataFolder).catch(() => dataFolder))) {
    throw new OwlError("invalid_params", `the volume ${hostPath} would show the server's own data folder`);
  }
  return { hostPath: real, owner: { uid: stats.uid, gid: stats.gid }, ...(opened !== undefined && { opened }) };
}

function overlaps(a: string, b: string): boolean {
  return a === b || a.startsWith(b === "/" ? b : `${b}/`) || b.startsWith(a === "/" ? a : `${a}/`);
}

/**
 * Compares the mounts of a process with what the server opened: a program on the host with write access above a folder could
 * have replaced it while it was mounted by name.
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

/** The options of each mount point; of several mounts on a point the last one counts. */
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

/** What is mounted over a secret. */
export interface EmptyPaths {
  readonly file: string;
  readonly folder: string;
}

export async function provideEmptyPaths(stateFolder: string): Promise<EmptyPaths> {
  const folder = join(stateFolder, "empty");
  const paths = { file: join(folder, "file"), folder: join(folder, "folder") };
  await mkdir(paths.folder, { recursive: true });
  // Never replaced: sandboxes of other servers may have it mounted, and the kernel removes a mount with its file.
  await writeFile(paths.file, "", { flag: "wx", mode: 0o444 }).catch((error: unknown) => {
    if (!hasCode(error, "EEXIST")) throw error;
  });
  await chmod(paths.folder, 0o555);
  return paths;
}
