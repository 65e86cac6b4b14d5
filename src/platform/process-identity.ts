import { readFileSync, readlinkSync } from "node:fs";
import { z } from "zod";

/** Identifies one process uniquely: the system uses a pid again for other processes. */
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

/** Identifies a process among those that share a store, also from other containers and on systems without `/proc`. */
export interface SharerIdentity {
  readonly pid: number;
  /** Clock ticks after boot; empty without `/proc`. */
  readonly startedAt: string;
  /** The namespace of the pid: each container has a separate one. */
  readonly namespace: string;
}

export function identifySelf(): SharerIdentity {
  return { pid: process.pid, startedAt: readStartTicks(process.pid) ?? "", namespace: ownNamespace() };
}

/** `undefined` when it cannot be known from this process. */
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

/** Replaces the start time of a zombie. */
const DEAD = "dead";

/** `undefined` when there is no such process, or no `/proc`. */
function readStartTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command's name is in parentheses, and may contain spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie has ended, and only waits for its parent to reap it.
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
