import { readFileSync, readlinkSync } from "node:fs";
import { z } from "zod";

/** Names one process for all time: a number alone is given again to others. */
export const processIdentitySchema = z.object({
  pid: z.number().int().positive(),
  /** Clock ticks after boot, from the kernel. */
  startTicks: z.string(),
  bootId: z.string(),
});

export type ProcessIdentity = z.infer<typeof processIdentitySchema>;

export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const startTicks = readStartTicks(pid);
  return startTicks === undefined || startTicks === DEAD ? undefined : { pid, startTicks, bootId: readBootId() };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identity.bootId === readBootId() && readStartTicks(identity.pid) === identity.startTicks;
}

/** The same among processes that share a store, from other containers and on systems without `/proc`. */
export interface SharerIdentity {
  readonly pid: number;
  /** Clock ticks after boot; empty where nobody tells. */
  readonly startedAt: string;
  /** Where the number means anything: containers count their own. */
  readonly namespace: string;
}

export function identifySelf(): SharerIdentity {
  return { pid: process.pid, startedAt: readStartTicks(process.pid) ?? "", namespace: ownNamespace() };
}

/** Nothing when it cannot be known from here. */
export function isSharerAlive({ pid, startedAt, namespace }: SharerIdentity): boolean | undefined {
  if (namespace !== ownNamespace()) return undefined;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
  const found = readStartTicks(pid);
  return found === undefined || (startedAt === "" && found !== DEAD) || found === startedAt;
}

/** In place of a time. */
const DEAD = "dead";

/** Nothing when there is no such process, or no `/proc`. */
function readStartTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command's name stands in brackets and may hold spaces and brackets itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie is dead, and only waits for its parent to notice: its time is nobody's.
    return fields[0] === "Z" ? DEAD : fields[19];
  } catch {
    return undefined;
  }
}

function ownNamespace(): string {
  try {
    return `${readlinkSync("/proc/self/ns/pid")} ${readBootId()}`;
  } catch {
    return "";
  }
}

function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
