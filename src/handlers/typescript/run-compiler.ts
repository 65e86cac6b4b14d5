import { isRecord } from "../../platform/records.ts";
import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { HandlerDescription, HandlerProblem } from "../handler-description.ts";

/** Far above the time for thousands of handlers. Bounds the server's start. */
const DEADLINE_MS = 120_000;
const MAX_STDERR_CHARS = 2000;

/** The result for one file, and what it depends on. */
export interface ExtractedFile {
  readonly file: string;
  readonly handlers: readonly HandlerDescription[];
  /** For each handler, the position of its function: a function that several files export is one tool. */
  readonly origins: readonly string[];
  readonly problems: readonly HandlerProblem[];
  readonly dependencies: readonly string[];
  /** Missing paths that were checked: a file that appears there changes the result. */
  readonly missing: readonly string[];
}

interface ExtractRequest {
  readonly files: readonly string[];
}

export interface ExtractAnswer {
  readonly extracted: readonly ExtractedFile[];
  /** SHA-256 of every file that was read, by path. */
  readonly digests: Readonly<Record<string, string>>;
}

/** Runs the compiler in a child process, so that it uses no memory and no CPU time of the server. */
export async function runCompiler(files: readonly string[], signal?: AbortSignal): Promise<ExtractAnswer> {
  signal?.throwIfAborted();
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  return await new Promise((resolve, reject) => {
    const child = fork(entryPath(), [], {
      execArgv: [...execArgv()],
      // It needs no environment variables, which may contain secrets.
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
      else reject(new Error("the compiler process sent an invalid answer"));
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

/** From the sources, Node 20 needs a loader for TypeScript. */
function execArgv(): readonly string[] {
  if (!isSource()) return [];
  return ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href];
}

/** The server's own child process answers, so only the shape is checked. */
function isExtractAnswer(value: unknown): value is ExtractAnswer {
  return isRecord(value) && "extracted" in value && "digests" in value;
}

export function isExtractRequest(value: unknown): value is ExtractRequest {
  return isRecord(value) && Array.isArray(value["files"]);
}
