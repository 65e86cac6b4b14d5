import type { FileMatch } from "../../contract/guest.ts";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { deferred } from "../deferred.ts";

export const SHOWN_CHARS_MAX = 1_000;
/** For compiled code. By default a thread of newer versions of Node reserves half a gigabyte, which counts as memory. */
const CODE_RANGE_MB = 32;

/** A search with a checked pattern and path. */
export interface SearchPlan {
  readonly folder: string;
  /** In `folder`; absent: everything below `folder`. */
  readonly onlyFile?: string;
  /** Prefix of every path of a match. */
  readonly prefix: string;
  readonly glob?: string;
  readonly includeHidden: boolean;
  readonly pattern: RegExp;
  /** The caller's pattern, when it is plain text. */
  readonly plainText?: string;
  readonly contextLines: number;
  readonly maxMatches: number;
}

export interface SearchProgress {
  /** The matches of one file. */
  onFile(matches: readonly FileMatch[]): void;
  /** Called at the end by an engine that reports files with matches only. */
  onSearched(fileCount: number): void;
}

/** Resolves when everything is searched, or after the signal aborts. */
export type SearchEngine = (plan: SearchPlan, progress: SearchProgress, signal: AbortSignal) => Promise<void>;

/** The guest's own search, in a thread: an expression with catastrophic backtracking can only be interrupted by ending its thread. */
export const searchInThread: SearchEngine = async (plan, progress, signal) => {
  const worker = new Worker(join(import.meta.dirname, "search-worker.mjs"), {
    workerData: plan,
    stdout: true,
    stderr: true,
    resourceLimits: { codeRangeSizeMb: CODE_RANGE_MB },
  });
  const done = deferred();
  const onAbort = (): void => done.resolve();
  signal.addEventListener("abort", onAbort);
  worker.on("message", ({ matches }: { matches: readonly FileMatch[] }) => progress.onFile(matches));
  worker.on("error", (error) => done.reject(error));
  worker.on("exit", () => done.resolve());
  try {
    await done.promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await worker.terminate();
  }
};
