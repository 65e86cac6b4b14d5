import { execFile } from "node:child_process";
import { promisify } from "node:util";

const TIMEOUT_MS = 20_000;

/** What a program prints. It runs at the root of the file system, where no project's own settings lie. */
export async function runTool(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const options = { cwd: "/", env: { ...env }, timeout: TIMEOUT_MS, maxBuffer: 1024 * 1024, encoding: "utf8" } as const;
  const { stdout } = await promisify(execFile)(command, [...args], options);
  return stdout.trim();
}
