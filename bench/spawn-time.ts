import { spawn } from "node:child_process";
import { once } from "node:events";
import { performance } from "node:perf_hooks";

const BUBBLEWRAP = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"];

/** What a tool without isolation does for a command: a shell, and its output through pipes. */
export function spawnBash(): Promise<number> {
  return timeOf("bash", ["-c", "true"]);
}

/** What a tool does that isolates each command by itself. */
export function spawnBubblewrap(): Promise<number> {
  return timeOf("bwrap", [...BUBBLEWRAP, "bash", "-c", "true"]);
}

async function timeOf(program: string, args: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  child.stderr.resume();
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ended with ${String(code)}`);
  return performance.now() - startedAt;
}
