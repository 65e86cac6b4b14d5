import { closeSync, constants, type Dirent, openSync, readdirSync, readlinkSync } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { fileFailure } from "../failure.ts";
import { isUtf8 } from "node:buffer";

/** Folders with more names are listed unsorted and truncated. */
const SORTED_NAMES_MAX = 100_000;

interface WalkOptions {
  readonly includeHidden: boolean;
  readonly recursive: boolean;
  readonly signal: AbortSignal;
}

interface WalkedEntry {
  /** Relative to the start of the walk, with `/` between names. */
  readonly path: string;
  /** The path to open; bytes when the name is not valid UTF-8. */
  readonly place: string | Buffer;
  readonly isFile: boolean;
}

interface FolderEntry {
  readonly name: string;
  readonly bytes?: Buffer;
  readonly isFile: boolean;
  readonly isFolder: boolean;
}

/**
 * Every entry below a folder, by name, folders before their entries. Links are entries and never followed, not even a link
 * that replaces a folder meanwhile: `place` goes through the open folder and is valid until the next entry.
 */
export async function* walk(folder: string, options: WalkOptions): AsyncGenerator<WalkedEntry> {
  const top = openTop(folder);
  try {
    const waiting = [""];
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      options.signal.throwIfAborted();
      const fd = openBelow(top, path);
      if (fd === undefined) continue;
      const below: string[] = [];
      try {
        for (const entry of await sortedEntries(fd, { isTop: path === "" })) {
          if (!options.includeHidden && entry.name.startsWith(".")) continue;
          const entryPath = path === "" ? entry.name : `${path}/${entry.name}`;
          yield { path: entryPath, place: placeOf(fd, entry), isFile: entry.isFile };
          // A name that cannot be encoded is not opened.
          if (options.recursive && entry.isFolder && entry.bytes === undefined) below.push(entryPath);
        }
      } finally {
        closeSync(fd);
      }
      waiting.push(...below.toReversed());
    }
  } finally {
    closeSync(top);
  }
}

function openTop(folder: string): number {
  try {
    return openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    throw fileFailure(error, folder);
  }
}

/** Entries that have been moved or removed are skipped. */
function openBelow(top: number, path: string): number | undefined {
  if (path === "") return openSync(pathOf(top), constants.O_RDONLY | constants.O_DIRECTORY);
  let fd: number | undefined;
  try {
    fd = openSync(join(pathOf(top), path), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    if (readlinkSync(pathOf(fd)) === join(readlinkSync(pathOf(top)), path)) return fd;
  } catch {
    // It was removed or cannot be read.
  }
  if (fd !== undefined) closeSync(fd);
  return undefined;
}

function pathOf(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

function placeOf(fd: number, { name, bytes }: FolderEntry): string | Buffer {
  return bytes === undefined ? join(pathOf(fd), name) : Buffer.concat([Buffer.from(`${pathOf(fd)}/`), bytes]);
}

async function sortedEntries(fd: number, { isTop }: { isTop: boolean }): Promise<FolderEntry[]> {
  let entries: FolderEntry[] = [];
  try {
    for await (const entry of await opendir(pathOf(fd), { bufferSize: 256 })) {
      entries.push(toEntry(entry));
      if (entries.length === SORTED_NAMES_MAX) break;
    }
    if (entries.some(({ name }) => name.includes("\uFFFD"))) entries = entriesByBytes(fd);
  } catch (error) {
    // An unreadable folder below is skipped; for the requested folder the error is reported.
    if (isTop) throw fileFailure(error, ".");
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function toEntry(entry: Dirent): FolderEntry {
  return { name: entry.name, isFile: entry.isFile(), isFolder: entry.isDirectory() };
}

/** As bytes, because names that are not valid UTF-8 could not be opened as text. */
function entriesByBytes(fd: number): FolderEntry[] {
  const found = readdirSync(pathOf(fd), { withFileTypes: true, encoding: "buffer" });
  return found.slice(0, SORTED_NAMES_MAX).map((entry) => {
    const name = shownName(entry.name);
    const isText = Buffer.from(name).equals(entry.name);
    const kinds = { isFile: entry.isFile(), isFolder: entry.isDirectory() };
    return { name, ...(isText ? {} : { bytes: entry.name }), ...kinds };
  });
}

/** A file's name as text. In a name that is not valid UTF-8, bytes that are not ASCII are shown as `\xe9`. */
export function shownName(name: Buffer): string {
  if (isUtf8(name)) return name.toString("utf8");
  return name.toString("latin1").replaceAll(/[^\0-\x7F]/gu, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
}
