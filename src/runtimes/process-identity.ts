import { readFileSync } from "node:fs";
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
  return startTicks === undefined ? undefined : { pid, startTicks, bootId: readBootId() };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identity.bootId === readBootId() && readStartTicks(identity.pid) === identity.startTicks;
}

function readStartTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command's name stands in brackets and may hold spaces and brackets itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie is dead, and only waits for its parent to notice.
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
