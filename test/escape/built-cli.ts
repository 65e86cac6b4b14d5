import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { CliOptions, CliResult } from "../integration/cli-process.ts";
import { temporaryFolder, trustConfigIn } from "../unit/config/temporary-folder.ts";

const MAIN = resolve(import.meta.dirname, "../../dist/main.js");

/** The built bin in a process of its own; it does not outlive the test. The sources take three times as long to start. */
export async function runCli(
  argv: readonly string[],
  { cwd = temporaryFolder(), env: own = {}, input = "", isTrusted = true }: CliOptions = {},
): Promise<CliResult> {
  const { PATH = "", HOME = "" } = process.env;
  const env = { XDG_DATA_HOME: temporaryFolder(), ...own };
  if (isTrusted) trustConfigIn(cwd, env);
  // These tests are about the command line; sandboxes would start processes and write to the data folder.
  const child = spawn(process.execPath, [MAIN, ...argv], {
    cwd,
    env: { PATH, HOME, MCP_SERVER_SANDBOX_ENABLED: "false", ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdin.end(input);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code: child.exitCode, out, err };
}
