import { opendir } from "node:fs/promises";
import { join } from "node:path";

const MAX_ENTRIES = 50_000;
const MAX_NAMED = 5;

export interface SpecialFiles {
  /** The first of them. */
  readonly paths: readonly string[];
  /** Whether the whole folder was read. */
  readonly isComplete: boolean;
}

/**
 * Sockets and FIFOs below a folder. They connect every process that sees them, on the host and in sandboxes, in read-only
 * folders too.
 */
export async function findSpecialFiles(folder: string): Promise<SpecialFiles> {
  const paths: string[] = [];
  const open = [folder];
  let entries = 0;
  for (let current = open.pop(); current !== undefined; current = open.pop()) {
    const found = await opendir(current).catch(() => undefined);
    // A folder that is closed to the server, or gone meanwhile.
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
