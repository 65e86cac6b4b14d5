import type { FileMatch } from "../../contract/guest.ts";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { deferred } from "../deferred.ts";

export const SHOWN_CHARS_MAX = 1_000;
/** For compiled code. Left to itself, a thread of newer Nodes reserves half a gigabyte, which counts as memory. */
const CODE_RANGE_MB = 32;

/** A search whose pattern and place are checked. */
export interface SearchPlan {
  readonly folder: string;
  /** In `folder`; without it, everything below. */
  readonly onlyFile?: string;
  /** Stands before every path of a match. */
  readonly prefix: string;
  readonly glob?: string;
  readonly includeHidden: boolean;
  readonly pattern: RegExp;
  /** What the caller wrote, where it is plain text. */
  readonly plainText?: string;
  readonly contextLines: number;
  readonly maxMatches: number;
}

export interface SearchProgress {
  /** The matches of one file. */
  onFile(matches: readonly FileMatch[]): void;
  /** At the end, for an engine that tells of files with matches alone. */
  onSearched(fileCount: number): void;
}

/** Resolves when everything was searched; ends early when the signal says so. */
export type SearchEngine = (plan: SearchPlan, progress: SearchProgress, signal: AbortSignal) => Promise<void>;

/** Our own search, in a thread that can be ended: an expression that takes forever cannot be interrupted otherwise. */
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
