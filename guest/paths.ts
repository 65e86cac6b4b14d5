import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { errorCode, Failure, fileFailure } from "./failure.ts";
import { OUTPUT_FOLDER } from "./output/output-files.ts";

const LINK_DEPTH_MAX = 40;
const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** A path in the workspace whose folder is held open: no part of the path can be replaced any more. */
export interface Place {
  /** Goes through the open folder: links and renames elsewhere have no effect. */
  readonly path: string;
  /** A path in the same folder. */
  sibling(name: string): string;
  close(): void;
}

/** A folder of the workspace that is held open. */
export interface OpenFolder {
  /** Its path when it was opened, for messages. */
  readonly absolute: string;
  /** Goes through the open folder; usable in threads and as the working folder of a program. */
  readonly path: string;
  close(): void;
}

/** Resolves paths of callers and rejects those outside the workspace. */
export class Workspace {
  readonly #givenRoot: string;
  readonly #root: string;

  constructor(options: { workspacePath: string; workspaceRealPath: string }) {
    this.#givenRoot = options.workspacePath;
    this.#root = options.workspaceRealPath;
  }

  get root(): string {
    return this.#root;
  }

  /** The path with every link resolved; its last parts may not exist. */
  resolve(path: string): string {
    const absolute = this.#toAbsolute(path);
    // Policy rules check the path without links, so a path outside that leads back in, such as /proc/self/cwd, is rejected.
    if (!isWithin(this.#root, absolute)) throw this.#outside(path);
    return this.#resolveLinks({ absolute, asked: path, depth: 0 });
  }

  /** Relative to the workspace, as callers write it. */
  display(absolute: string): string {
    return relative(this.#root, absolute) || ".";
  }

  folder(path: string): string {
    const absolute = this.resolve(path);
    const found = guarded(path, () => lstatSync(absolute));
    if (found.isDirectory()) return absolute;
    throw new Failure("not_a_directory", `${path}: it is no folder`, "name the folder that holds it");
  }

  /** Also when a part of the path is replaced by a link meanwhile, the opened file is in the workspace. */
  openFolder(path: string): OpenFolder {
    const absolute = this.folder(path);
    const fd = guarded(path, () => this.#checked(openSync(absolute, FOLDER_FLAGS), path));
    return { absolute, path: `/proc/self/fd/${fd}`, close: () => closeSync(fd) };
  }

  /** Opens `path`. Also when the path changes meanwhile, the descriptor refers to a file in the workspace. */
  #open(path: string, flags: number): number {
    const absolute = this.resolve(path);
    return guarded(path, () => this.#checked(openSync(absolute, flags), path));
  }

  /** Opens a regular file for reading: in the workspace, or a file with the whole of a truncated output. */
  openFile(path: string): { readonly fd: number; readonly sizeBytes: number } {
    const fd = isOutputFile(path) ? guarded(path, () => openSync(path, READ_FLAGS)) : this.#open(path, READ_FLAGS);
    const found = fstatSync(fd);
    if (found.isFile()) return { fd, sizeBytes: found.size };
    closeSync(fd);
    const hint = found.isDirectory() ? "list it, or name a file in it" : "use the shell for pipes, sockets and devices";
    throw new Failure("not_a_file", `${path}: it is no regular file`, hint);
  }

  /** Opens the folder of `path` and makes missing folders. */
  openPlace(path: string): Place {
    const absolute = this.resolve(path);
    if (absolute === this.#root) throw new Failure("not_a_file", `${path}: it is a folder`, "name a file in it");
    const fd = guarded(path, () => this.#openFolder(dirname(absolute), path));
    const inside = `/proc/self/fd/${fd}`;
    return {
      path: `${inside}/${basename(absolute)}`,
      sibling: (name) => `${inside}/${name}`,
      close: () => closeSync(fd),
    };
  }

  #toAbsolute(path: string): string {
    if (path.includes("\0")) {
      throw new Failure("not_found", "a path cannot hold a NUL character", "remove it from the path");
    }
    const absolute = resolve(this.#root, path);
    if (isAbsolute(path) && isWithin(this.#givenRoot, absolute)) {
      return join(this.#root, relative(this.#givenRoot, absolute));
    }
    return absolute;
  }

  #resolveLinks(options: { absolute: string; asked: string; depth: number }): string {
    const { absolute, asked, depth } = options;
    if (depth > LINK_DEPTH_MAX) throw circle(asked);
    const missing: string[] = [];
    for (let existing = absolute; ; existing = dirname(existing)) {
      const real = this.#tryResolve(existing, asked);
      if (real !== undefined) {
        const found = join(real, ...missing);
        if (!isWithin(this.#root, found)) throw this.#outside(asked);
        return found;
      }
      const target = danglingTarget(existing);
      if (target !== undefined) {
        const next = join(resolve(dirname(existing), target), ...missing);
        return this.#resolveLinks({ absolute: next, asked, depth: depth + 1 });
      }
      missing.unshift(basename(existing));
    }
  }

  #tryResolve(path: string, asked: string): string | undefined {
    try {
      return realpathSync.native(path);
    } catch (error) {
      if (errorCode(error) === "ENOENT") return undefined;
      if (errorCode(error) === "ELOOP") throw circle(asked);
      // An error message about a file outside would reveal that it exists.
      if (!isWithin(this.#root, path)) throw this.#outside(asked);
      throw fileFailure(error, asked);
    }
  }

  #openFolder(absolute: string, asked: string): number {
    try {
      return this.#checked(openSync(absolute, FOLDER_FLAGS), asked);
    } catch (error) {
      if (errorCode(error) !== "ENOENT" || absolute === this.#root) throw error;
    }
    const parentFd = this.#openFolder(dirname(absolute), asked);
    try {
      const path = `/proc/self/fd/${parentFd}/${basename(absolute)}`;
      makeFolder(path);
      return openSync(path, FOLDER_FLAGS);
    } finally {
      closeSync(parentFd);
    }
  }

  #checked(fd: number, asked: string): number {
    if (isWithin(this.#root, readlinkSync(`/proc/self/fd/${fd}`))) return fd;
    closeSync(fd);
    throw this.#outside(asked);
  }

  #outside(path: string): Failure {
    const hint = `use a path below ${this.#givenRoot}, or one relative to it`;
    return new Failure("outside_workspace", `${path}: it is outside the workspace`, hint);
  }
}

function circle(path: string): Failure {
  const hint = "remove or correct the links (ls -l shows where they lead), or name the file itself";
  return new Failure("outside_workspace", `${path}: its symbolic links lead in a circle`, hint);
}

function isOutputFile(path: string): boolean {
  return dirname(path) === OUTPUT_FOLDER && /^[\w-]+\.txt$/u.test(basename(path));
}

function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}

function danglingTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // It is not a link, or does not exist.
    return undefined;
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    // A concurrent call has made it.
    if (errorCode(error) !== "EEXIST") throw error;
  }
}

function guarded<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw fileFailure(error, path);
  }
}
