import { lstatSync, readdirSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { TrustedPath } from "./trusted-files.ts";
import type { VolumeSetting } from "./volume.ts";

/** A path in a volume that sandboxes cannot access as it is. */
export interface ProtectedPath {
  /** Absolute, with symbolic links resolved. */
  readonly path: string;
  readonly kind: "file" | "folder";
  /**
   * `read-only`: a path that the server trusts. `hidden`: a secret. `pinned`: a folder above one of these. It stays
   * writable and cannot be renamed or removed.
   */
  readonly access: "read-only" | "hidden" | "pinned";
  readonly role: string;
  /** Set when nothing exists at the path: the server creates it at its start. */
  readonly placeholder?: string;
}

/** A volume with its resolved folder and the protected paths in it. Each path precedes the paths below it. */
export interface PlannedVolume extends VolumeSetting {
  readonly protectedPaths: readonly ProtectedPath[];
}

export interface VolumeProblem {
  readonly reason: string;
  readonly fix: string;
}

/** A sandbox that writes there would change programs of the host for all users. */
const SYSTEM_FOLDERS = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot"];
const MOVE_IT = "move it out of the mounted folder, or mount the folder read-only with :ro";

/** Decides how each trusted path inside a volume is protected from sandboxes, or returns why it cannot be. */
export function planVolume(
  volume: VolumeSetting,
  { others, trusted }: { readonly others: readonly VolumeSetting[]; readonly trusted: readonly TrustedPath[] },
): PlannedVolume | VolumeProblem {
  const real = realpathSync(volume.hostPath);
  const planned = { ...volume, hostPath: real };
  const problem = placeProblem(planned, others, resolveLinks(volume.hostPath).links);
  if (problem !== undefined) return problem;
  const found = new Map<string, ProtectedPath>();
  for (const path of trusted) {
    const verdict = protect(planned, path);
    if (verdict === undefined) continue;
    if ("reason" in verdict) return verdict;
    for (const each of verdict) found.set(each.path, stricter(each, found.get(each.path)));
  }
  const protectedPaths = [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  return { ...planned, protectedPaths: protectedPaths.filter((each) => !isCovered(each, protectedPaths)) };
}

export function isVolumeProblem(verdict: PlannedVolume | VolumeProblem): verdict is VolumeProblem {
  return "reason" in verdict;
}

function placeProblem(
  volume: VolumeSetting,
  others: readonly VolumeSetting[],
  links: readonly string[],
): VolumeProblem | undefined {
  const { hostPath, isReadOnly } = volume;
  const system = SYSTEM_FOLDERS.find((folder) => isWithin(hostPath, folder));
  if (!isReadOnly && system !== undefined)
    return {
      reason: `sandboxes could change programs of this machine in ${system}`,
      fix: "mount it read-only with :ro",
    };
  const paths = [hostPath, ...links];
  const outer = others.find(
    (other) => !other.isReadOnly && paths.some((path) => isBelow(path, realpathSync(other.hostPath))),
  );
  if (outer === undefined) return undefined;
  return {
    reason: `it lies in ${outer.hostPath}, which sandboxes may write: they could put a link to another folder in its place`,
    fix: "mount the outer folder alone, or the outer one read-only with :ro",
  };
}

function protect(volume: VolumeFolder, trusted: TrustedPath): readonly ProtectedPath[] | VolumeProblem | undefined {
  const { hostPath, isReadOnly } = volume;
  const resolved = resolveLinks(trusted.path);
  const { real, isMissing } = resolved;
  const problem = aroundProblem(volume, trusted, resolved);
  if (problem !== undefined) return problem;
  if (!isBelow(real, hostPath)) return undefined;
  const { isSecret = false, role, kind, placeholder } = trusted;
  if (isReadOnly && (!isSecret || isMissing)) return undefined;
  const own = ownProblem(trusted, resolved);
  if (own !== undefined) return own;
  if (isReadOnly) return [{ path: real, kind, access: "hidden", role }];
  const access = isSecret ? "hidden" : "read-only";
  const made = isMissing && placeholder !== undefined ? { placeholder } : {};
  return [
    ...foldersBetween(hostPath, real).map((folder) => pinned(folder, role)),
    { path: real, kind, access, role, ...made },
  ];
}

/** The volume is inside a trusted folder, or contains a symbolic link in the path of a trusted file. */
function aroundProblem(
  { hostPath, isReadOnly }: VolumeFolder,
  { role, kind, isSecret = false }: TrustedPath,
  { real, links }: Resolved,
): VolumeProblem | undefined {
  const link = links.find((each) => isBelow(each, hostPath));
  if (!isReadOnly && link !== undefined)
    return { reason: `${link} is a link that sandboxes could change, and leads to ${role}`, fix: MOVE_IT };
  if (kind !== "folder" || !isWithin(hostPath, real) || (isReadOnly && !isSecret)) return undefined;
  const harm = isSecret ? "read" : "change";
  return { reason: `it lies in ${real}: sandboxes could ${harm} ${role}`, fix: "mount another folder" };
}

/** A missing path cannot be mounted over itself, and a mount over a file does not protect its other hard links. */
function ownProblem(
  { path, role, kind, placeholder, isSecret = false, hasSingleNames = false }: TrustedPath,
  { real, isMissing }: Resolved,
): VolumeProblem | undefined {
  if (isMissing && placeholder === undefined)
    return { reason: `${path} (${role}) does not exist, and a sandbox could make it`, fix: `make it, or ${MOVE_IT}` };
  const files = isMissing ? [] : kind === "file" ? [real] : hasSingleNames ? filesIn(real) : [];
  const linked = files.find((file) => statSync(file).nlink > 1);
  if (linked === undefined) return undefined;
  return {
    reason: `${kind === "file" ? path : linked} (${role}) has another name, by which a sandbox could ${isSecret ? "read" : "change"} it`,
    fix: `copy it, or ${MOVE_IT}`,
  };
}

function filesIn(folder: string): readonly string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

type VolumeFolder = Pick<VolumeSetting, "hostPath" | "isReadOnly">;

function pinned(path: string, role: string): ProtectedPath {
  return { path, kind: "folder", access: "pinned", role };
}

function foldersBetween(outer: string, path: string): readonly string[] {
  const parent = dirname(path);
  return parent === outer ? [] : [...foldersBetween(outer, parent), parent];
}

const STRICTNESS = { pinned: 0, "read-only": 1, hidden: 2 };

function stricter(one: ProtectedPath, other: ProtectedPath | undefined): ProtectedPath {
  return other === undefined || STRICTNESS[one.access] >= STRICTNESS[other.access] ? one : other;
}

/** A path needs no protection when a folder above it is protected at least as strictly. */
function isCovered(each: ProtectedPath, all: readonly ProtectedPath[]): boolean {
  return all.some(
    (other) =>
      other.access !== "pinned" &&
      isBelow(each.path, other.path) &&
      STRICTNESS[other.access] >= STRICTNESS[each.access],
  );
}

interface Resolved {
  readonly real: string;
  /** The symbolic links in the path, each with the links above it resolved. */
  readonly links: readonly string[];
  readonly isMissing: boolean;
}

const MAX_LINKS = 40;

/** Resolves symbolic links component by component, and records the location of each. */
export function resolveLinks(path: string): Resolved {
  const links: string[] = [];
  const open = path.split(sep).filter((part) => part !== "");
  let real = "/";
  for (let part = open.shift(); part !== undefined; part = open.shift()) {
    const next = part === ".." ? dirname(real) : join(real, part);
    const stats = statsOf(next);
    if (stats === undefined) return { real: join(next, ...open), links, isMissing: true };
    if (!stats.isSymbolicLink()) {
      real = next;
      continue;
    }
    links.push(next);
    if (links.length > MAX_LINKS) throw new Error(`${path} leads through too many links`);
    const target = readlinkSync(next);
    if (target.startsWith(sep)) real = "/";
    open.unshift(...target.split(sep).filter((each) => each !== "" && each !== "."));
  }
  return { real, links, isMissing: false };
}

/** `undefined` also for a path that this user may not access: the server cannot read files there either. */
function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EACCES") return undefined;
    throw error;
  }
}

export function isBelow(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder === "/" ? "/" : `${folder}/`);
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || isBelow(path, folder);
}
