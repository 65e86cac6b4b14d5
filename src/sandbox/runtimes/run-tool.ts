import { spawn } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { join } from "node:path";

/** Tools are looked up only here and not on the PATH of the server's user. */
export const TOOL_FOLDERS: readonly string[] = [
  "/usr/local/sbin",
  "/usr/local/bin",
  "/usr/sbin",
  "/usr/bin",
  "/sbin",
  "/bin",
];

const MAX_OUTPUT_CHARS = 64 * 1024;

interface ToolResult {
  /** `null` when a signal ended it or it could not be started. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface ToolCall {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Kills it; the result then has no code. */
  readonly signal?: AbortSignal;
}

/** Runs a tool of the machine without the server's environment. It never rejects. */
export async function runTool(call: ToolCall): Promise<ToolResult> {
  return await new Promise((resolve) => {
    const child = spawn(call.command, call.args, {
      cwd: "/",
      env: { PATH: TOOL_FOLDERS.join(":"), LC_ALL: "C", ...call.env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: call.timeoutMs,
      killSignal: "SIGKILL",
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout = (stdout + text).slice(0, MAX_OUTPUT_CHARS);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(0, MAX_OUTPUT_CHARS);
    });
    child.once("error", (error) => resolve({ code: null, stdout, stderr: error.message }));
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}

export async function findTool(name: string): Promise<string | undefined> {
  for (const folder of TOOL_FOLDERS) {
    const path = join(folder, name);
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {
      // The next folder may have it.
    }
  }
  return undefined;
}
