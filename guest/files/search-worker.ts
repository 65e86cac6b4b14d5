import type { FileMatch } from "../../contract/guest.ts";
import { parentPort, workerData } from "node:worker_threads";
import { compileGlob } from "./glob.ts";
import { searchLines } from "./line-search.ts";
import type { SearchPlan } from "./search-engine.ts";
import { walk } from "./walk.ts";

/** Runs in its own thread, so that an expression that does not end can be interrupted. */
async function search(): Promise<void> {
  // oxlint-disable-next-line typescript/no-unsafe-assignment -- from the thread that started this one
  const plan: SearchPlan = workerData;
  const { folder, onlyFile, prefix, glob, pattern, contextLines, maxMatches, includeHidden } = plan;
  const isWanted = glob === undefined ? () => true : compileGlob(glob);
  const options = { includeHidden, recursive: true, signal: new AbortController().signal };

  const searchOne = async (path: string, place: string | Buffer, found: number): Promise<FileMatch[]> => {
    // One more than requested shows that there are more.
    const wanted = maxMatches - found + 1;
    const matches = await searchLines({
      path: prefix + path,
      place,
      pattern,
      contextLines,
      maxMatches: wanted,
    }).catch(() => []);
    parentPort?.postMessage({ matches }, []);
    return matches;
  };

  if (onlyFile !== undefined) {
    await searchOne(onlyFile, `${folder}/${onlyFile}`, 0);
    return;
  }
  let found = 0;
  for await (const { path, place, isFile } of walk(folder, options)) {
    if (!isFile || !isWanted(path)) continue;
    found += (await searchOne(path, place, found)).length;
    if (found > maxMatches) return;
  }
}

await search();
