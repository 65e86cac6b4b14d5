import type { ProcessInfo } from "../../contract/guest.ts";
import { readdirSync, readFileSync } from "node:fs";

const COMMAND_CHARS_MAX = 200;
const LISTED_MAX = 50;

/** Every living process below `root`, without `root`. */
export function descendantPids(root: number): number[] {
  const found: number[] = [];
  const waiting = [root];
  for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
    for (const child of childrenOf(pid)) {
      found.push(child);
      waiting.push(child);
    }
  }
  return found;
}

/** Without zombies. */
export function describeProcesses(pids: readonly number[]): ProcessInfo[] {
  const infos: ProcessInfo[] = [];
  for (const pid of pids.slice(0, LISTED_MAX)) {
    const command = readProc(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim() || nameIfAlive(pid);
    if (command !== "") infos.push({ pid, command: command.slice(0, COMMAND_CHARS_MAX) });
  }
  return infos;
}

/** A zombie has no command line, and a program that is being loaded has none yet. */
function nameIfAlive(pid: number): string {
  const [, name = "", state = "Z"] = /\((.*)\) (\w) /su.exec(readProc(`/proc/${pid}/stat`)) ?? [];
  return state === "Z" || state === "X" ? "" : name;
}

/** Whether it is runnable or waits for the disk. */
export function wantsToRun(pid: number): boolean {
  return /\) [RD] /u.test(readProc(`/proc/${pid}/stat`));
}

/** The last started process or thread in the sandbox; undefined when the kernel does not tell. */
export function newestPid(): number | undefined {
  const pid = Number(readProc("/proc/loadavg").trim().split(" ").at(-1));
  return pid >= process.pid ? pid : undefined;
}

/** Every process with `marker` in its environment. */
export function processesWithMarker(marker: string): number[] {
  return allPids().filter((pid) => readProc(`/proc/${pid}/environ`).split("\0").includes(marker));
}

function childrenOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    // It has exited.
    return [];
  }
  const children: number[] = [];
  for (const thread of threads) {
    const text = tryReadProc(`/proc/${pid}/task/${thread}/children`);
    // Not every kernel has this file; the slower way is by the parents' ids.
    if (text === undefined) return allPids().filter((candidate) => parentOf(candidate) === pid);
    for (const child of text.split(" ")) if (child !== "") children.push(Number(child));
  }
  return children;
}

function parentOf(pid: number): number {
  // The name, in brackets, may contain any character.
  const [, afterName = ""] = /\) . (\d+) /u.exec(readProc(`/proc/${pid}/stat`)) ?? [];
  return Number(afterName);
}

function allPids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .map(Number);
}

function readProc(path: string): string {
  return tryReadProc(path) ?? "";
}

function tryReadProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
