import { type ChildProcess, spawn } from "node:child_process";
import { Duplex } from "node:stream";
import { CallJournal } from "./call-journal.ts";
import type { LaunchedWorker } from "./launched-worker.ts";

export interface ProcessCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/** Starts a worker beside the server: the protocol on descriptor 3, the journal on 4. */
export function launchProcess({ program, args, env, cwd }: ProcessCommand): LaunchedWorker {
  const journal = CallJournal.create();
  const child = spawn(program, [...args], {
    env,
    ...(cwd !== undefined && { cwd }),
    stdio: ["ignore", "pipe", "pipe", "pipe", journal.fd],
  });
  const stream = child.stdio[3];
  const { stdout, stderr } = child;
  if (!(stream instanceof Duplex) || stdout === null || stderr === null) {
    throw new TypeError("a worker needs its pipes");
  }
  return {
    stream,
    outputs: [
      { name: "stdout", stream: stdout },
      { name: "stderr", stream: stderr },
    ],
    exited: exitOf(child),
    journal,
    kill: () => void child.kill("SIGKILL"),
  };
}

function exitOf(child: ChildProcess): LaunchedWorker["exited"] {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ code: null, signal: null, reason: error.message }));
    // Not "close": what the worker started may hold its output open for longer than it lives.
    child.once("exit", (code, signal) => setImmediate(() => resolve({ code, signal })));
  });
}
