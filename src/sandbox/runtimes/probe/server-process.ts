/** Cells number their own processes from 1 on: so does a container, in which the server itself may run. */
const DISTINCT_PID = 1000;
const NO_PID = 2 ** 22 - 1;

/**
 * What to signal and to read of the server itself. Where its number may be that of a process inside, neither would say
 * anything: that no foreign process is visible, whatever its number, is tried as well.
 */
export function serverProcess(): { readonly serverPid: number; readonly files: readonly string[] } {
  const { pid } = process;
  return pid > DISTINCT_PID ? { serverPid: pid, files: [`/proc/${pid}/environ`] } : { serverPid: NO_PID, files: [] };
}
