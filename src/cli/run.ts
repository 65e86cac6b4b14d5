import { CommanderError } from "commander";
import { EXIT } from "./exit-code.ts";
import { buildProgram } from "./program.ts";
import { reportFailure } from "./report-failure.ts";
import type { Terminal } from "./terminal.ts";

/** Runs one command line and says how it ended. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = buildProgram({ terminal, finish: (code) => (exitCode = code) });
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has said its part already; help and version are no failures.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return reportFailure(error, terminal);
  }
}
