import { readFileSync, readlinkSync } from "node:fs";

/** A process as others can find it again, and tell it from a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string;
  /** Where the number means anything: containers count their own. */
  readonly namespace: string;
}

/** In place of a start time. */
const DEAD = "dead";

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startedAt: startOf(process.pid) ?? "", namespace: ownNamespace() };
}

/** Nothing when it cannot be known from here. */
export function isAlive({ pid, startedAt, namespace }: ProcessIdentity): boolean | undefined {
  if (namespace !== ownNamespace()) return undefined;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
  const found = startOf(pid);
  return found === undefined || (startedAt === "" && found !== DEAD) || found === startedAt;
}

/** The 22nd field; the name before it may hold spaces and brackets. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie is dead, and only waits for its parent to notice: its time is nobody's.
    return fields[0] === "Z" ? DEAD : fields[19];
  } catch {
    return undefined;
  }
}

function ownNamespace(): string {
  try {
    return `${readlinkSync("/proc/self/ns/pid")} ${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}`;
  } catch {
    return "";
  }
}
