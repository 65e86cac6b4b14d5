import type { GuestParams, ListedProcess } from "../../contract/guest.ts";
import { readdirSync, readFileSync } from "node:fs";
import { Failure } from "../failure.ts";

const LISTED_MAX = 500;
const COMMAND_CHARS_MAX = 500;
const PAGE_BYTES = 4096;
const MS_PER_TICK = 10;

/** Every process in the sandbox, including the guest. */
export function listProcesses(): { processes: ListedProcess[] } {
  const upMs = Number(read("/proc/uptime").split(" ", 1)[0] ?? 0) * 1000;
  const pids = readdirSync("/proc").filter((name) => /^\d+$/u.test(name));
  return { processes: pids.slice(0, LISTED_MAX).flatMap((pid) => describe(Number(pid), upMs)) };
}

/** Signals a process. The guest is refused: without it the sandbox would end. */
export function killProcess({ pid, signal }: GuestParams["process.kill"]): Record<string, never> {
  if (pid === 1 || pid === process.pid || pid === process.ppid)
    throw new Failure("permission_denied", `${pid} keeps the sandbox alive`, "stop the sandbox to end it");
  try {
    process.kill(pid, signal);
  } catch {
    throw new Failure("unknown_process", `there is no process ${pid}`, "look at the list again");
  }
  return {};
}

function describe(pid: number, upMs: number): ListedProcess[] {
  const stat = read(`/proc/${pid}/stat`);
  // The name, in brackets, may contain any character.
  const [, name = "", rest = ""] = /\((.*)\) (.*)/su.exec(stat) ?? [];
  const fields = rest.split(" ");
  // It has exited, or is a zombie.
  if (rest === "" || fields[0] === "Z") return [];
  const [parent, user, system, start, pages] = [1, 11, 12, 19, 21].map((index) => Number(fields[index] ?? 0));
  const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim() || name;
  return [
    {
      pid,
      parent: parent ?? 0,
      command: command.slice(0, COMMAND_CHARS_MAX),
      cpuMs: ((user ?? 0) + (system ?? 0)) * MS_PER_TICK,
      ageMs: Math.max(0, Math.round(upMs - (start ?? 0) * MS_PER_TICK)),
      memoryBytes: (pages ?? 0) * PAGE_BYTES,
    },
  ];
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It has exited.
    return "";
  }
}
