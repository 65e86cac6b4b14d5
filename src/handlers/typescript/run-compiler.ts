import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type ExtractAnswer, isExtractAnswer } from "./extracted-file.ts";

/** Far above what thousands of handlers take; a compiler that hangs must not hold the start for ever. */
const DEADLINE_MS = 120_000;
const MAX_STDERR_CHARS = 2000;

/** Runs the compiler in a process of its own, so that its memory and its seconds never burden the server. */
export async function runCompiler(files: readonly string[], signal?: AbortSignal): Promise<ExtractAnswer> {
  signal?.throwIfAborted();
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  return await new Promise((resolve, reject) => {
    const child = fork(entryPath(), [], {
      execArgv: [...execArgv()],
      // It reads files and needs nothing of ours, least of all secrets.
      env: {},
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      serialization: "advanced",
      signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      killSignal: "SIGKILL",
    });
    let complaint = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      complaint = (complaint + text).slice(-MAX_STDERR_CHARS);
    });
    child.once("message", (answer: unknown) => {
      if (isExtractAnswer(answer)) resolve(answer);
      else reject(new Error("the compiler process gave no answer that could be read"));
    });
    child.once("error", reject);
    child.once("close", (code, killedBy) => {
      reject(new Error(`the compiler process ended early (${killedBy ?? code}): ${complaint.trim()}`));
    });
    child.send({ files }, (error) => {
      if (error !== null) reject(error);
    });
  });
}

function isSource(): boolean {
  return import.meta.url.endsWith(".ts");
}

function entryPath(): string {
  return fileURLToPath(new URL(`./compiler-process.${isSource() ? "ts" : "js"}`, import.meta.url));
}

/** From the sources, Node 20 needs a loader for TypeScript; from the build it needs nothing. */
function execArgv(): readonly string[] {
  if (!isSource()) return [];
  return ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href];
}
