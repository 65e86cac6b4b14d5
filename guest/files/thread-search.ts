import type { FileMatch } from "../../contract/guest.ts";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { deferred } from "../deferred.ts";
import type { SearchEngine } from "./search-engine.ts";

/** For compiled code. Left to itself, a thread of newer Nodes reserves half a gigabyte, which counts as memory. */
const CODE_RANGE_MB = 32;

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
