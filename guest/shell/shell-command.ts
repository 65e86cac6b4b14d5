import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BadParams } from "../failure.ts";
import { findProgram } from "../find-program.ts";

/** The kernel takes no longer argument (128 KiB with its end). */
const ARGUMENT_BYTES_MAX = 131_000;

interface ShellCommand {
  readonly argv: [string, ...string[]];
  /** When the shell needs nothing of it any more. */
  dispose(): void;
}

/** How a shell is started for `command`. */
export function toShellCommand(command: string, searchPath: string | undefined): ShellCommand {
  if (command.includes("\0")) throw new BadParams("command must not hold a NUL character");
  const shell = findProgram("bash", searchPath) ?? "/bin/sh";
  if (Buffer.byteLength(command) <= ARGUMENT_BYTES_MAX) {
    return { argv: [shell, "-c", "--", command], dispose: () => {} };
  }
  const folder = mkdtempSync(join(tmpdir(), ".owlclaw-command-"));
  const script = join(folder, "command.sh");
  writeFileSync(script, command);
  return { argv: [shell, script], dispose: () => rmSync(folder, { recursive: true, force: true }) };
}

export function checkEnvironment(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/u.test(name)) {
      throw new BadParams(`env: ${JSON.stringify(name)} is no name of a variable`);
    }
    if (value.includes("\0")) throw new BadParams(`env.${name} must not hold a NUL character`);
  }
}
