import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { withLock } from "../../scripts/setup/lock.mjs";

const CACHE = resolve(import.meta.dirname, "../../.cache");

/** A folder that is made once and kept for the next run. Its name must change with what is in it; others who want it wait. */
export async function cachedFolder(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const folder = join(CACHE, name);
  if (existsSync(folder)) return folder;
  return await withLock(`${folder}.lock`, async () => {
    if (existsSync(folder)) return folder;
    const draft = `${folder}-${process.pid}`;
    try {
      mkdirSync(draft, { recursive: true });
      await fill(draft);
      renameSync(draft, folder);
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
    return folder;
  });
}
