import { access, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { runTool } from "../../run-tool.ts";

const MOVE_TIMEOUT_MS = 15_000;
const MOVE_POLL_MS = 10;

/**
 * Asks the user's systemd for a group of this process's own, with the right to divide it: a login session's group is
 * not the user's to divide.
 */
export async function adoptScope(serverName: string): Promise<boolean> {
  const uid = process.getuid?.();
  const bus = `/run/user/${uid}/bus`;
  try {
    await access(bus);
  } catch {
    return false;
  }
  const scope = `${serverName}.scope`;
  const call = ["--user", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1"];
  const method = ["org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))"];
  const properties = ["2", "PIDs", "au", "1", String(process.pid), "Delegate", "b", "true"];
  const started = await runTool({
    command: "busctl",
    args: [...call, ...method, scope, "fail", ...properties, "0"],
    env: { XDG_RUNTIME_DIR: `/run/user/${uid}`, DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}` },
    timeoutMs: MOVE_TIMEOUT_MS,
  });
  return started.code === 0 && (await hasMovedTo(scope));
}

/** The answer comes when systemd has queued the move, not when it is done. */
async function hasMovedTo(scope: string): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < MOVE_TIMEOUT_MS; waitedMs += MOVE_POLL_MS) {
    if ((await readFile("/proc/self/cgroup", "utf8")).includes(`/${scope}`)) return true;
    await delay(MOVE_POLL_MS);
  }
  return false;
}
