import { type Dirent, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { FSWatcher } from "chokidar";

/** Folders of tools. Users do not edit handlers or skills in them, and they contain most of the files of a project. */
export const IGNORED_FOLDERS: ReadonlySet<string> = new Set(["node_modules", ".git", "__pycache__"]);

const SECOND_LOOK_MS = 250;

/**
 * Folders that were just created. What is put into one before the underlying watcher watches it is not reported, and
 * may not be watched from then on: a second scan finds it.
 */
export class NewFolders {
  readonly #watcher: FSWatcher;
  readonly #onFound: (path: string) => void;
  /** Each with the names in it that were reported. */
  #folders = new Map<string, Set<string>>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(watcher: FSWatcher, onFound: (path: string) => void) {
    this.#watcher = watcher;
    this.#onFound = onFound;
  }

  add(folder: string): void {
    if (this.#isClosed) return;
    if (!this.#folders.has(folder)) this.#folders.set(folder, new Set());
    this.#timer ??= setTimeout(() => this.#look(), SECOND_LOOK_MS).unref();
  }

  onTold(path: string): void {
    this.#folders.get(dirname(path))?.add(basename(path));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #look(): void {
    this.#timer = undefined;
    const folders = this.#folders;
    this.#folders = new Map();
    for (const [folder, told] of folders) {
      for (const entry of entriesOf(folder)) if (!told.has(entry.name)) this.#found(join(folder, entry.name), entry);
    }
  }

  /** The watcher does not report what it finds in a folder that is added, so all of it is reported here. */
  #found(path: string, entry: Dirent): void {
    this.#watcher.add(path);
    this.#onFound(path);
    if (!entry.isDirectory()) return;
    this.add(path);
    for (const inside of entriesOf(path)) this.#found(join(path, inside.name), inside);
  }
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !IGNORED_FOLDERS.has(name));
  } catch {
    // Removed meanwhile.
    return [];
  }
}
