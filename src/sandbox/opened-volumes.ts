import { closeSync, fstatSync, lchownSync, lstatSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { basename, relative, sep, join } from "node:path";
import type { PlannedVolume, ProtectedPath } from "../config/plan-volumes.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { FileIdentity, OpenedPath, Volume } from "./runtimes/runtime.ts";
import type { Logger } from "../telemetry/logger.ts";
import { opendir } from "node:fs/promises";
import type { Config } from "../config/schema.ts";

/** From `fcntl.h`; not in Node's constants. The descriptor identifies the file and gives no access to its content. */
const O_PATH = 0o10000000;
const O_DIRECTORY = 0o200000;
const O_NOFOLLOW = 0o400000;
const CHECK_MS = 250;
const MAX_ENTRIES = 50_000;
const MAX_NAMED = 5;

interface OpenedVolumesOptions {
  readonly planned: readonly PlannedVolume[];
  readonly logger: Logger;
  /** Running sandboxes have lost a protection: the kernel removes a mount with the file that it is mounted on. */
  readonly onReplaced: (path: string) => void;
}

/**
 * The configured folders, opened once. Every sandbox mounts the opened folders, also when another folder has the name later.
 * Files in them that the server trusts are mounted read-only.
 */
class OpenedVolumes {
  readonly volumes: readonly Volume[];
  readonly #opened: readonly OpenedVolume[];
  readonly #timer: NodeJS.Timeout;

  constructor({ planned, logger, onReplaced }: OpenedVolumesOptions) {
    if (planned.length > 0 && process.platform !== "linux")
      throw new OwlError("sandbox_unavailable", "mounted folders need a server on Linux");
    const opened: OpenedVolume[] = [];
    try {
      for (const volume of planned) opened.push(new OpenedVolume(volume, logger));
    } catch (error) {
      for (const volume of opened) volume.close();
      throw error;
    }
    this.#opened = opened;
    this.volumes = opened;
    for (const { hostPath } of planned) void warnOfSpecialFiles(hostPath, logger);
    this.#timer = setInterval(() => this.#check(logger, onReplaced), CHECK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const volume of this.#opened) volume.close();
  }

  #check(logger: Logger, onReplaced: (path: string) => void): void {
    for (const volume of this.#opened) {
      const path = volume.replacedPath();
      if (path === undefined) continue;
      logger.error("a protected path was replaced in a folder that sandboxes may write: check its content", { path });
      onReplaced(path);
      volume.openProtected();
    }
  }
}

async function warnOfSpecialFiles(folder: string, logger: Logger): Promise<void> {
  const { paths, isComplete } = await findSpecialFiles(folder);
  if (paths.length > 0)
    logger.warning("a mounted folder holds sockets or FIFOs: they connect sandboxes with this machine", {
      folder,
      paths,
    });
  if (!isComplete && paths.length === 0)
    logger.info("a mounted folder is too large to be searched for sockets and FIFOs", { folder });
}

class OpenedVolume implements Volume {
  readonly hostPath: string;
  readonly guestPath: string;
  readonly isReadOnly: boolean;
  readonly opened: OpenedPath;
  readonly #planned: readonly ProtectedPath[];
  readonly #logger: Logger;
  readonly #fd: number;
  #protected: readonly (ProtectedPath & Opened)[] = [];
  #problem: OwlError | undefined;

  constructor({ hostPath, guestPath, isReadOnly, protectedPaths }: PlannedVolume, logger: Logger) {
    this.hostPath = hostPath;
    this.guestPath = guestPath;
    this.isReadOnly = isReadOnly;
    this.#planned = protectedPaths;
    this.#logger = logger;
    const { fd, opened } = openBelow("/", hostPath, "folder");
    this.#fd = fd;
    this.opened = opened;
    try {
      this.#openAll();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The mounts over paths in the volume, outermost first. */
  get protectedPaths(): NonNullable<Volume["protectedPaths"]> {
    if (this.#problem !== undefined) throw this.#problem;
    const replaced = this.replacedPath();
    if (replaced !== undefined) throw replacedError(replaced);
    return this.#protected.map(({ path, kind, access, opened }) => {
      return { relativePath: relative(this.hostPath, path), kind, access, opened };
    });
  }

  /** The first protected path that was replaced since it was opened. */
  replacedPath(): string | undefined {
    return this.#protected.find(({ path, opened }) => !isSame(this.#pathInside(path), opened))?.path;
  }

  /** Opens all again after one was replaced. When that fails, no sandbox starts with this volume. */
  openProtected(): void {
    try {
      this.#openAll();
      this.#problem = undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#logger.error("a mounted folder cannot be protected: sandboxes do not start", {
        folder: this.hostPath,
        reason,
      });
      this.#problem = new OwlError("sandbox_unavailable", `the mounted folder cannot be protected: ${reason}`, {
        hint: "The operator must restore the path and restart the server.",
      });
      this.#closeProtected();
    }
  }

  close(): void {
    this.#closeProtected();
    closeSync(this.#fd);
  }

  #openAll(): void {
    this.#closeProtected();
    const opened: (ProtectedPath & Opened)[] = [];
    this.#protected = opened;
    for (const planned of this.#planned) {
      this.#provide(planned);
      opened.push({ ...planned, ...openBelow(this.opened.procPath, this.#relative(planned.path), planned.kind) });
    }
  }

  /** Makes missing protected paths, so that no sandbox can make them. */
  #provide({ path, kind, access, placeholder }: ProtectedPath): void {
    const inside = this.#pathInside(path);
    const isMissing = lstatSync(inside, { throwIfNoEntry: false }) === undefined;
    if (!isMissing || (placeholder === undefined && access !== "pinned")) return;
    if (kind === "folder") mkdirSync(inside, 0o755);
    else writeFileSync(inside, placeholder ?? "", { flag: "wx", mode: 0o644 });
    // Owned by the owner of the folder, also when root runs the server.
    const { uid, gid } = fstatSync(this.#fd);
    if (process.getuid?.() === 0) lchownSync(inside, uid, gid);
    this.#logger.info("made in a mounted folder, so that no sandbox can make it", { path });
  }

  #relative(path: string): string {
    return relative(this.hostPath, path);
  }

  /** Below the opened folder, also when another folder has its name. */
  #pathInside(path: string): string {
    return `${this.opened.procPath}/${this.#relative(path)}`;
  }

  #closeProtected(): void {
    for (const { fd } of this.#protected) closeSync(fd);
    this.#protected = [];
  }
}

interface Opened {
  readonly fd: number;
  readonly opened: OpenedPath;
}

/** Opens component by component and follows no link. */
function openBelow(start: string, path: string, kind: "file" | "folder"): Opened {
  let fd = openSync(start, O_PATH | O_DIRECTORY);
  const names = path.split(sep).filter((name) => name !== "");
  try {
    for (const [index, name] of names.entries()) {
      const isLast = index === names.length - 1;
      const flags = O_PATH | O_NOFOLLOW | (isLast && kind === "file" ? 0 : O_DIRECTORY);
      const next = openSync(`/proc/self/fd/${fd}/${name}`, flags);
      closeSync(fd);
      fd = next;
    }
    const stats = fstatSync(fd, { bigint: true });
    if (stats.isSymbolicLink()) throw new Error(`${path} is a link`);
    return { fd, opened: { procPath: `/proc/${process.pid}/fd/${fd}`, dev: stats.dev, ino: stats.ino } };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function isSame(path: string, identity: FileIdentity): boolean {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stats !== undefined && stats.dev === identity.dev && stats.ino === identity.ino;
}

function replacedError(path: string): OwlError {
  return new OwlError("sandbox_unavailable", `${basename(path)} was replaced in the mounted folder a moment ago`, {
    retryable: true,
    hint: "Try again.",
  });
}

interface SpecialFiles {
  /** The first five. */
  readonly paths: readonly string[];
  /** Whether the whole folder was read. */
  readonly isComplete: boolean;
}

/** Sockets and FIFOs below a folder. They connect processes on the host and in sandboxes, also when the mount is read-only. */
export async function findSpecialFiles(folder: string): Promise<SpecialFiles> {
  const paths: string[] = [];
  const open = [folder];
  let entries = 0;
  for (let current = open.pop(); current !== undefined; current = open.pop()) {
    const found = await opendir(current).catch(() => undefined);
    // The folder cannot be read or is gone.
    if (found === undefined) continue;
    for await (const entry of found) {
      entries += 1;
      if (entries > MAX_ENTRIES || paths.length === MAX_NAMED) return { paths, isComplete: false };
      const path = join(current, entry.name);
      if (entry.isSocket() || entry.isFIFO()) paths.push(path);
      if (entry.isDirectory()) open.push(path);
    }
  }
  return { paths, isComplete: true };
}

interface LazyVolumesOptions {
  readonly config: Config;
  /** `sandbox.volumes` with their protected paths. */
  readonly volumes: readonly PlannedVolume[];
  readonly logger: Logger;
}

/** The mounted folders, opened when the first sandbox or the warm pool needs them. Commands that start no sandbox change nothing in them. */
export class LazyVolumes {
  readonly #options: LazyVolumesOptions;
  readonly #onReplaced: (path: string) => void;
  #opened: OpenedVolumes | undefined;

  constructor(options: LazyVolumesOptions, onReplaced: (path: string) => void) {
    if (options.volumes.length !== options.config.sandbox.volumes.length)
      throw new OwlError("internal", "sandbox.volumes were not checked");
    this.#options = options;
    this.#onReplaced = onReplaced;
  }

  get volumes(): readonly Volume[] {
    const { volumes: planned, logger } = this.#options;
    this.#opened ??= new OpenedVolumes({ planned, logger, onReplaced: this.#onReplaced });
    return this.#opened.volumes;
  }

  close(): void {
    this.#opened?.close();
  }
}
