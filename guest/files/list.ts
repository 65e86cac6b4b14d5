import type { FileEntry, GuestParams, GuestResult } from "../../contract/guest.ts";
import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "../paths.ts";
import { compileGlob, reachesBelow } from "./glob.ts";
import { walk } from "./walk.ts";

/** The range of JavaScript dates, on both sides of 1970. */
const LAST_DATE_MS = 8.64e15;

export async function listFiles(
  workspace: Workspace,
  params: GuestParams["file.list"],
  signal: AbortSignal,
): Promise<GuestResult<"file.list">> {
  const matches = params.glob === undefined ? () => true : compileGlob(params.glob);
  const recursive = params.recursive || (params.glob !== undefined && reachesBelow(params.glob));
  const entries: FileEntry[] = [];
  const folder = workspace.openFolder(params.path);
  try {
    const options = { includeHidden: params.includeHidden, recursive, signal };
    for await (const { path, place } of walk(folder.path, options)) {
      if (!matches(path)) continue;
      if (entries.length === params.maxEntries) return { path: params.path, entries, isTruncated: true };
      const found = describe(place);
      if (found !== undefined) entries.push({ path: join(workspace.display(folder.absolute), path), ...found });
    }
    return { path: params.path, entries, isTruncated: false };
  } finally {
    folder.close();
  }
}

/** Synchronous: awaiting each of thousands of files takes three times as long. */
function describe(place: string | Buffer): Omit<FileEntry, "path"> | undefined {
  try {
    const found = lstatSync(place);
    const type = typeOf(found);
    const linkTarget = type === "symlink" ? { linkTarget: readlinkSync(place) } : {};
    const times = { modifiedAt: isoTime(found.mtimeMs), changedAtMs: found.ctimeMs };
    return { type, sizeBytes: found.size, ...times, ...linkTarget };
  } catch {
    // It was removed after the folder was read.
    return undefined;
  }
}

/** Some file systems have times outside the range of dates; the file is listed nevertheless. */
function isoTime(ms: number): string {
  return new Date(Math.max(-LAST_DATE_MS, Math.min(ms, LAST_DATE_MS))).toISOString();
}

function typeOf(found: Stats): FileEntry["type"] {
  if (found.isFile()) return "file";
  if (found.isDirectory()) return "directory";
  return found.isSymbolicLink() ? "symlink" : "other";
}
