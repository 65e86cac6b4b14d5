import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { HandlerDescription, HandlerProblem } from "../handler-description.ts";

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

/** What the compiler found in one file, and what that depends on. */
export interface ExtractedFile {
  readonly file: string;
  readonly handlers: readonly HandlerDescription[];
  /** For each handler, where its function is written: a function that several files export is one tool. */
  readonly origins: readonly string[];
  readonly problems: readonly HandlerProblem[];
  readonly dependencies: readonly string[];
  /** Paths that were looked for in vain: a file that appears there changes the result. */
  readonly missing: readonly string[];
}

interface ExtractRequest {
  readonly files: readonly string[];
}

export interface ExtractAnswer {
  readonly extracted: readonly ExtractedFile[];
  /** SHA-256 of everything that was read, by path. */
  readonly digests: Readonly<Record<string, string>>;
}

/** Our own child process answers, so that the shape alone is looked at. */
function isExtractAnswer(value: unknown): value is ExtractAnswer {
  return typeof value === "object" && value !== null && "extracted" in value && "digests" in value;
}

export function isExtractRequest(value: unknown): value is ExtractRequest {
  return typeof value === "object" && value !== null && "files" in value && Array.isArray(value.files);
}
