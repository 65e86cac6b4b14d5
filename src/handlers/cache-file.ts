import { createHash, randomUUID } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isRecord } from "../platform/records.ts";

const MAX_SOURCE_BYTES = 64 * 1024 * 1024;

/** A cache in one JSON file. It is empty when the file is absent or damaged, or was written by other code (`key`). */
export class CacheFile<Contents extends object> {
  readonly #path: string;
  readonly #key: Promise<string>;
  readonly #empty: Contents;

  constructor(path: string, key: Promise<string>, empty: Contents) {
    this.#path = path;
    this.#key = key;
    this.#empty = empty;
  }

  async read(): Promise<Contents> {
    const text = await readFile(this.#path, "utf8").catch(() => "");
    // The first line is the digest of the rest: a truncated or edited file is not used.
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    if (end === -1 || digestOf(body) !== text.slice(0, end)) return this.#empty;
    const saved: unknown = JSON.parse(body);
    return isRecord(saved) && saved["key"] === (await this.#key) && this.#isContents(saved) ? saved : this.#empty;
  }

  /** Replaces the file atomically. Write errors are ignored: without a cache the next start is only slower. */
  async write(contents: Contents): Promise<void> {
    const body = JSON.stringify({ ...contents, key: await this.#key });
    const fresh = `${this.#path}.${randomUUID()}`;
    try {
      await mkdir(dirname(this.#path), { recursive: true });
      await writeFile(fresh, `${digestOf(body)}\n${body}`, { mode: 0o600 });
      await rename(fresh, this.#path);
    } catch {
      await rm(fresh, { force: true }).catch(() => undefined);
    }
  }

  /** The key says which code wrote the file, so the names of the members are enough. */
  #isContents(saved: object): saved is Contents {
    return Object.keys(this.#empty).every((name) => name in saved);
  }
}

/** Changes with the Node version and with the code in these folders, so that no version number must be maintained. */
export async function codeKey(folders: readonly string[], more: readonly string[]): Promise<string> {
  const names = await Promise.all(
    folders.map(async (folder) => {
      const found = await readdir(folder).catch((): string[] => []);
      return found.sort().map((name) => join(folder, name));
    }),
  );
  const code = names.flat().filter((path) => /\.(?:[jt]s|py)$/.test(path));
  return digestOf([process.version, ...more, ...code.map((path) => `${path} ${stampOf(path)}`)].join("\n"));
}

/** Changes when the file or folder does; empty when there is none, or when it cannot be read. */
export function stampOf(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? "" : `${stats.size}/${stats.mtimeMs}/${stats.ctimeMs}`;
  } catch {
    // The name is too long or the folder is not readable: the worker cannot read it either.
    return "";
  }
}

export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/** The path may be a FIFO or a device, whose read would block. @throws Error for these, and for a missing file. */
export function readRegularFile(path: string): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile()) throw new Error(`${path} is not a regular file`);
    if (found.size > MAX_SOURCE_BYTES) throw new Error(`${path} is larger than ${MAX_SOURCE_BYTES} bytes`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
