import { statSync } from "node:fs";
import { basename } from "node:path";
import { glob } from "tinyglobby";

const EXTENSIONS = "{ts,mts,js,mjs,py}";
const IGNORED = [
  "**/node_modules/**",
  "**/__pycache__/**",
  "**/.venv/**",
  "**/site-packages/**",
  "**/*.d.ts",
  "**/*.d.mts",
];

/** The files that hold handlers. Those whose name starts with `_` are left for helpers. */
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
