import { opendir } from "node:fs/promises";
import { join } from "node:path";
import type { Dirent } from "node:fs";
import { fileFailure } from "../failure.ts";

/** More names than this in one folder come unsorted and cut. */
const SORTED_NAMES_MAX = 100_000;

export interface WalkOptions {
  readonly includeHidden: boolean;
  readonly recursive: boolean;
  readonly signal: AbortSignal;
}

export interface WalkedEntry {
  /** Relative to where the walk began, with `/` between names. */
  readonly path: string;
  readonly absolute: string;
  readonly entry: Dirent;
}

/** Every entry below a folder, by name, folders before what is in them. Links are entries; nothing is followed. */
export async function* walk(folder: string, options: WalkOptions): AsyncGenerator<WalkedEntry> {
  const waiting = [""];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    options.signal.throwIfAborted();
    const below: string[] = [];
    for (const entry of await sortedEntries(join(folder, path), { isTop: path === "" })) {
      if (!options.includeHidden && entry.name.startsWith(".")) continue;
      const entryPath = path === "" ? entry.name : `${path}/${entry.name}`;
      yield { path: entryPath, absolute: join(folder, entryPath), entry };
      if (options.recursive && entry.isDirectory()) below.push(entryPath);
    }
    waiting.push(...below.toReversed());
  }
}

async function sortedEntries(folder: string, { isTop }: { isTop: boolean }): Promise<Dirent[]> {
  const entries: Dirent[] = [];
  try {
    for await (const entry of await opendir(folder, { bufferSize: 256 })) {
      entries.push(entry);
      if (entries.length === SORTED_NAMES_MAX) break;
    }
  } catch (error) {
    // A folder below that cannot be read, or is gone by now, is left out; the one that was asked for is not.
    if (isTop) throw fileFailure(error, folder);
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}
