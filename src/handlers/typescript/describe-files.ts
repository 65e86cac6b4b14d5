import { messageOf } from "../../errors/owl-error.ts";
import { resolve } from "node:path";
import type { FileDescription, HandlerProblem } from "../handler-description.ts";
import { DescriptionCache } from "./description-cache.ts";
import { runCompiler, type ExtractAnswer, type ExtractedFile } from "./run-compiler.ts";

export interface DescribeOptions {
  /** Absolute paths. */
  readonly files: readonly string[];
  readonly cacheFolder: string;
  readonly signal?: AbortSignal;
}

/**
 * The tools that the files export: one description per file, in the same order. Unchanged files are taken from the cache; the
 * compiler runs in a child process for the others.
 */
export async function describeTypeScript({
  files,
  cacheFolder,
  signal,
}: DescribeOptions): Promise<readonly FileDescription[]> {
  signal?.throwIfAborted();
  const paths = files.map((file) => resolve(file));
  const cache = await DescriptionCache.open(cacheFolder);
  const found = new Map<string, ExtractedFile>();
  await Promise.all(
    paths.map(async (path) => {
      const entry = await cache.find(path);
      if (entry !== undefined) found.set(path, entry);
    }),
  );
  const stale = [...new Set(paths.filter((path) => !found.has(path)))];
  if (stale.length > 0) {
    const startedAtMs = Date.now();
    const { answer, failed } = await extract(stale, signal);
    await cache.add(answer, startedAtMs);
    for (const entry of [...answer.extracted, ...failed]) found.set(entry.file, entry);
  }
  return withoutTwins(paths.map((path) => found.get(path) ?? failure(path, new Error("nothing was extracted"))));
}

interface Extraction {
  readonly answer: ExtractAnswer;
  /** Not cached: the next attempt may succeed. */
  readonly failed: readonly ExtractedFile[];
}

/** When the compiler process fails, the files are halved, so that only the file that causes it is not described. */
async function extract(files: readonly string[], signal: AbortSignal | undefined): Promise<Extraction> {
  try {
    return { answer: await runCompiler(files, signal), failed: [] };
  } catch (error) {
    signal?.throwIfAborted();
    const [only] = files;
    if (only === undefined || files.length === 1) {
      return { answer: { extracted: [], digests: {} }, failed: only === undefined ? [] : [failure(only, error)] };
    }
    const half = Math.ceil(files.length / 2);
    const first = await extract(files.slice(0, half), signal);
    const second = await extract(files.slice(half), signal);
    return {
      answer: {
        extracted: [...first.answer.extracted, ...second.answer.extracted],
        digests: { ...first.answer.digests, ...second.answer.digests },
      },
      failed: [...first.failed, ...second.failed],
    };
  }
}

function failure(file: string, error: unknown): ExtractedFile {
  const message = `its types could not be read: ${messageOf(error)}`;
  const problem: HandlerProblem = { file, message, fix: "simplify its types, or use defineHandler with a schema" };
  return { file, handlers: [], origins: [], problems: [problem], dependencies: [], missing: [] };
}

/** A function that several files export is one tool, of the file that declares it or else of the first one. */
function withoutTwins(entries: readonly ExtractedFile[]): FileDescription[] {
  const owners = new Map<string, string>();
  for (const { file, origins } of entries) {
    for (const origin of origins) if (!owners.has(origin) || origin.startsWith(`${file}:`)) owners.set(origin, file);
  }
  const reported = new Set<string>();
  return entries.map(({ file, handlers, origins, problems, dependencies }) => ({
    file,
    handlers: handlers.filter((_, index) => owners.get(origins[index] ?? "") === file),
    problems: problems.filter((problem) => {
      const key = JSON.stringify(problem);
      const isNew = !reported.has(key);
      reported.add(key);
      return isNew;
    }),
    dependencies,
  }));
}
