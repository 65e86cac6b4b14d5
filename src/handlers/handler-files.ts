import { statSync } from "node:fs";
import { basename } from "node:path";
import { glob } from "tinyglobby";
import { stateOf } from "../platform/watch-files.ts";

const EXTENSIONS = "{ts,mts,js,mjs,py}";
const IGNORED = [
  "**/node_modules/**",
  "**/__pycache__/**",
  "**/.venv/**",
  "**/site-packages/**",
  "**/*.d.ts",
  "**/*.d.mts",
];

/** The handler files. A name that starts with `_` marks a helper file. */
export async function findHandlerFiles(paths: readonly string[]): Promise<readonly string[]> {
  const patterns = paths.map((path) => (isFolder(path) ? `${escapeGlob(path)}/**/*.${EXTENSIONS}` : path));
  if (patterns.length === 0) return [];
  const found = await glob(patterns, { absolute: true, ignore: IGNORED });
  return found.filter((file) => !basename(file).startsWith("_")).sort();
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function escapeGlob(path: string): string {
  return path.replaceAll(/[\\*?[\]{}()!]/g, "\\$&");
}

/** The states of handler files and their imports when they were read. */
export class FileStates {
  readonly #states = new Map<string, string>();

  note(files: readonly string[]): void {
    for (const file of files) this.#states.set(file, stateOf(file));
  }

  forget(file: string): void {
    this.#states.delete(file);
  }

  has(file: string): boolean {
    return this.#states.has(file);
  }

  hasChanged(file: string): boolean {
    return stateOf(file) !== this.#states.get(file);
  }

  changed(): readonly string[] {
    return [...this.#states.keys()].filter((file) => this.hasChanged(file));
  }
}
