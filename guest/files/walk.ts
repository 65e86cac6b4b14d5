import { closeSync, constants, type Dirent, openSync, readdirSync, readlinkSync } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { fileFailure } from "../failure.ts";
import { isUtf8 } from "node:buffer";

/** More names than this in one folder come unsorted and cut. */
const SORTED_NAMES_MAX = 100_000;

interface WalkOptions {
  readonly includeHidden: boolean;
  readonly recursive: boolean;
  readonly signal: AbortSignal;
}

interface WalkedEntry {
  /** Relative to where the walk began, with `/` between names. */
  readonly path: string;
  /** How to get at it; bytes where the name is no text. */
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
 * Every entry below a folder, by name, folders before what is in them. Links are entries; nothing is followed, not even
 * a link that takes a folder's place meanwhile: `place` goes through the open folder, and is good until the next entry.
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
          // What has no name that can be written stays closed.
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

/** What is not where its name says, or is gone by now, is left out. */
function openBelow(top: number, path: string): number | undefined {
  if (path === "") return openSync(pathOf(top), constants.O_RDONLY | constants.O_DIRECTORY);
  let fd: number | undefined;
  try {
    fd = openSync(join(pathOf(top), path), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    if (readlinkSync(pathOf(fd)) === join(readlinkSync(pathOf(top)), path)) return fd;
  } catch {
    // It was removed, or may not be read.
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
    // A folder below that cannot be read is left out; the one that was asked for is not.
    if (isTop) throw fileFailure(error, ".");
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function toEntry(entry: Dirent): FolderEntry {
  return { name: entry.name, isFile: entry.isFile(), isFolder: entry.isDirectory() };
}

/** As text, names that are no UTF-8 would name nothing. */
function entriesByBytes(fd: number): FolderEntry[] {
  const found = readdirSync(pathOf(fd), { withFileTypes: true, encoding: "buffer" });
  return found.slice(0, SORTED_NAMES_MAX).map((entry) => {
    const name = shownName(entry.name);
    const isText = Buffer.from(name).equals(entry.name);
    const kinds = { isFile: entry.isFile(), isFolder: entry.isDirectory() };
    return { name, ...(isText ? {} : { bytes: entry.name }), ...kinds };
  });
}

/** A file's name as text. Of one that is no UTF-8, bytes that are no ASCII are shown as in `\xe9`. */
export function shownName(name: Buffer): string {
  if (isUtf8(name)) return name.toString("utf8");
  return name.toString("latin1").replaceAll(/[^\0-\x7F]/gu, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
}
