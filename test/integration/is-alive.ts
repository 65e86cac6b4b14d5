import { readFileSync } from "node:fs";

/** A process that ended and waits for its parent to notice is no longer alive; its parent may notice at any moment. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/mu.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
