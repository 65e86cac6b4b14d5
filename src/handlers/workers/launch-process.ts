import { type ChildProcess, spawn } from "node:child_process";
import { Duplex, type Readable } from "node:stream";
import { CallRegisters } from "./call-registers.ts";
import { boundedLines } from "../../platform/bounded-lines.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { Config } from "../../config/schema.ts";
import { workerEnvironment } from "../../config/environment.ts";

const MAX_LINE_CHARS = 2000;

const MAX_LINES_PER_WINDOW = 200;

const WINDOW_MS = 10_000;

/** Of lines that arrive at once. */
const MAX_LINES_AT_ONCE = 50;

export interface WorkerExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly reason?: string;
}

/** A started worker process, beside the server or in a sandbox. */
export interface LaunchedWorker {
  readonly stream: Duplex;
  /** Its output, for the log. */
  readonly outputs: readonly { readonly name: "stdout" | "stderr"; readonly stream: Readable }[];
  readonly exited: Promise<WorkerExit>;
  /** Resolves when its sandbox is removed, which may be after its exit. */
  readonly cleared?: Promise<void>;
  readonly registers?: CallRegisters;
  /** Throws for a message that must not be parsed. */
  readonly assertLine?: (line: string) => void;
  /** Prefix of every path inside, when the files are mounted elsewhere. */
  readonly pathPrefix?: string;
  kill(): void;
}

export type LaunchWorker = () => Promise<LaunchedWorker>;

export interface ProcessCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/** Starts a worker process beside the server: the protocol is on descriptor 3, the registers are on 4. */
export function launchProcess({ program, args, env, cwd }: ProcessCommand): LaunchedWorker {
  const registers = CallRegisters.create();
  const child = spawn(program, [...args], {
    env,
    ...(cwd !== undefined && { cwd }),
    stdio: ["ignore", "pipe", "pipe", "pipe", registers.fd],
  });
  const stream = child.stdio[3];
  const { stdout, stderr } = child;
  if (!(stream instanceof Duplex) || stdout === null || stderr === null) {
    throw new TypeError("a worker process has no pipes");
  }
  return {
    stream,
    outputs: [
      { name: "stdout", stream: stdout },
      { name: "stderr", stream: stderr },
    ],
    exited: exitOf(child),
    registers,
    kill: () => void child.kill("SIGKILL"),
  };
}

function exitOf(child: ChildProcess): LaunchedWorker["exited"] {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ code: null, signal: null, reason: error.message }));
    // Not "close": processes that the worker started may keep its output open after its exit.
    child.once("exit", (code, signal) => setImmediate(() => resolve({ code, signal })));
  });
}

/** Logs a worker's output line by line, with a rate limit. */
export function logOutputs({ outputs }: LaunchedWorker, logger: Logger, onLine?: (line: string) => void): void {
  let windowStartedMs = 0;
  let lines = 0;
  const log = (name: string, line: string): void => {
    onLine?.(line);
    const nowMs = performance.now();
    if (nowMs - windowStartedMs > WINDOW_MS) {
      if (lines > MAX_LINES_PER_WINDOW) {
        logger.warning("handler output exceeds the log's rate limit", { dropped_lines: lines - MAX_LINES_PER_WINDOW });
      }
      windowStartedMs = nowMs;
      lines = 0;
    }
    lines += 1;
    if (lines <= MAX_LINES_PER_WINDOW) logger.info("handler says", { from: name, text: line });
  };
  for (const { name, stream } of outputs) {
    stream.on("error", () => undefined);
    boundedLines(stream, {
      maxLineChars: MAX_LINE_CHARS,
      maxLinesAtOnce: MAX_LINES_AT_ONCE,
      onLine: (line) => log(name, line),
      onSkipped: (count) => (lines += count),
    });
  }
}

/** The command of a Node worker. From the sources, as in tests, it needs a TypeScript loader. */
export function nodeWorkerCommand(options: {
  readonly cacheFolder: string;
  readonly env: ProcessCommand["env"];
}): ProcessCommand {
  const isSource = import.meta.url.endsWith(".ts");
  const program = fileURLToPath(new URL(`./node-worker.${isSource ? "ts" : "js"}`, import.meta.url));
  const loader = isSource ? ["--import", import.meta.resolve("tsx")] : [];
  return {
    program: process.execPath,
    args: [...loader, "--enable-source-maps", program, "fd", options.cacheFolder],
    env: options.env,
  };
}

/** Starts the first Node worker while the server still loads its own code: both take about as long. */
export class EarlyWorker {
  #worker: LaunchedWorker | undefined;

  constructor(config: Config) {
    if (needsNodeWorker(config)) this.#worker = launchNodeWorker(config);
  }

  /** Returns the worker once. */
  take(): LaunchedWorker | undefined {
    const worker = this.#worker;
    this.#worker = undefined;
    return worker;
  }

  /** Kills the worker if it was not taken. */
  dismiss(): void {
    this.take()?.kill();
  }
}

export function launchNodeWorker({ sandbox }: Config): LaunchedWorker {
  const cacheFolder = join(sandbox.root, "cache", "handlers");
  return launchProcess(nodeWorkerCommand({ cacheFolder, env: workerEnvironment() }));
}

function needsNodeWorker({ handlers: { paths, isolation } }: Config): boolean {
  return isolation === "worker" && paths.some((path) => !path.endsWith(".py"));
}
