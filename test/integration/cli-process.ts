import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { temporaryFolder, trustConfigIn } from "../unit/config/temporary-folder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const MAIN = `${ROOT}dist/main.js`;

export interface CliOptions {
  readonly cwd?: string;
  /** The whole environment of the process beside PATH and HOME: nothing of the machine's own settings gets in. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Whether the user has trusted an mcp-server.yaml in `cwd`. Default: yes. */
  readonly isTrusted?: boolean;
}

export interface CliResult {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The real bin in a process of its own; it does not outlive the test. */
export function spawnCli(
  argv: readonly string[],
  { cwd = ROOT, env: own = {}, isTrusted = true }: CliOptions = {},
): ChildProcessWithoutNullStreams {
  const { PATH = "", HOME = "" } = process.env;
  const env = { XDG_DATA_HOME: temporaryFolder(), ...own };
  if (isTrusted) trustConfigIn(cwd, env);
  const child = spawn(process.execPath, [MAIN, ...argv], {
    cwd,
    // These tests are about the command line; sandboxes would start processes and write to the data folder.
    env: { PATH, HOME, MCP_SERVER_SANDBOX_ENABLED: "false", ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

export async function runCli(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const child = spawnCli(argv, options);
  child.stdin.end(options.input ?? "");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), child.exitCode ?? once(child, "exit")]);
  return { code: child.exitCode, out, err };
}
