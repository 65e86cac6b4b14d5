import type { GuestParams, GuestResult } from "../../contract/guest.ts";
import { isDoneWithin } from "../deferred.ts";
import { BadParams, errorCode } from "../failure.ts";
import { CallOutput } from "../output/bounded-output.ts";
import type { SendOutput } from "../output/output-batches.ts";
import type { OutputFiles } from "../output/output-files.ts";
import type { Workspace } from "../paths.ts";
import { wantsToRun } from "../processes/descendants.ts";
import type { Launcher, RunningProcess } from "../processes/running-process.ts";
import type { BackgroundProcesses } from "./background.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram } from "../find-program.ts";

/** Processes such as `>(…)` end a moment after the shell; later ones count as left running. */
const LINGER_MS = 30;
/** Longer on a busy machine, for processes that wait for the CPU. */
const LINGER_ROUNDS = 10;
/** The longest argument of the kernel (128 KiB with its terminator). */
const ARGUMENT_BYTES_MAX = 131_000;

export interface ShellOptions {
  readonly launcher: Launcher;
  readonly workspace: Workspace;
  readonly environment: Readonly<Record<string, string>>;
  readonly background: BackgroundProcesses;
  readonly files: OutputFiles;
  readonly send: SendOutput;
}

export async function execShell(
  options: ShellOptions,
  params: GuestParams["shell.exec"],
  signal: AbortSignal,
): Promise<GuestResult<"shell.exec">> {
  const startMs = performance.now();
  const child = await start(options, params);
  if (params.stdin !== undefined) child.input.end(params.stdin);
  if (params.background) return options.background.add(child);

  const output = new CallOutput({ ...params, files: options.files, send: options.send });
  child.stdout.onData(output.onStdout);
  child.stderr.onData(output.onStderr);
  const status = await waitForEnd(child, { timeoutMs: params.timeoutMs, signal });
  await Promise.all([child.stdout.drain(), child.stderr.drain()]);
  const texts = output.finish();
  const exit = await child.exited;
  const leftRunning = child.descendants();
  child.release();
  return {
    status,
    exitCode: exit.code,
    signal: exit.signal,
    ...texts,
    durationMs: performance.now() - startMs,
    leftRunning,
  };
}

async function start(options: ShellOptions, params: GuestParams["shell.exec"]): Promise<RunningProcess> {
  const cwd = params.cwd === undefined ? options.workspace.root : options.workspace.folder(params.cwd);
  checkEnvironment(params.env ?? {});
  const env = { ...options.environment, PWD: cwd, ...params.env };
  const command = toShellCommand(params.command, options.environment["PATH"]);
  try {
    const stdin = params.stdin === undefined ? "empty" : "pipe";
    const child = await options.launcher.launch({ argv: command.argv, cwd, env, stdin });
    void child.gone.then(() => command.dispose());
    return child;
  } catch (error) {
    command.dispose();
    if (errorCode(error) !== "E2BIG") throw error;
    throw new BadParams("env is too large: the system takes at most about 128 KiB a value");
  }
}

async function waitForEnd(
  child: RunningProcess,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<"exited" | "timeout" | "cancelled"> {
  let onAbort = (): void => {};
  let timer: NodeJS.Timeout | undefined;
  const interrupted = new Promise<"timeout" | "cancelled">((resolve) => {
    timer = setTimeout(() => resolve("timeout"), Math.min(options.timeoutMs, 2 ** 31 - 1));
    onAbort = () => resolve("cancelled");
    if (options.signal.aborted) onAbort();
    options.signal.addEventListener("abort", onAbort);
  });
  try {
    const status = await Promise.race([interrupted, child.exited.then(() => "exited" as const)]);
    if (status === "exited") await linger(child);
    else await child.end();
    return status;
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", onAbort);
  }
}

async function linger(child: RunningProcess): Promise<void> {
  for (let round = 0; round < LINGER_ROUNDS; round += 1) {
    if (await isDoneWithin(child.gone, LINGER_MS)) return;
    if (!child.descendants().some(({ pid }) => wantsToRun(pid))) return;
  }
}

interface ShellCommand {
  readonly argv: [string, ...string[]];
  /** Called when the shell needs the files no more. */
  dispose(): void;
}

/** The command line of a shell for `command`. */
function toShellCommand(command: string, searchPath: string | undefined): ShellCommand {
  if (command.includes("\0")) throw new BadParams("command must not hold a NUL character");
  const shell = findProgram("bash", searchPath) ?? "/bin/sh";
  if (Buffer.byteLength(command) <= ARGUMENT_BYTES_MAX) {
    return { argv: [shell, "-c", "--", command], dispose: () => {} };
  }
  const folder = mkdtempSync(join(tmpdir(), ".owlclaw-command-"));
  const script = join(folder, "command.sh");
  writeFileSync(script, command);
  return { argv: [shell, script], dispose: () => rmSync(folder, { recursive: true, force: true }) };
}

function checkEnvironment(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/u.test(name)) {
      throw new BadParams(`env: ${JSON.stringify(name)} is no name of a variable`);
    }
    if (value.includes("\0")) throw new BadParams(`env.${name} must not hold a NUL character`);
  }
}
