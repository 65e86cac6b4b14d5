import { CommanderError } from "commander";
import { UsageError, EXIT } from "./command.ts";
import { buildProgram } from "./program.ts";
import { type Terminal, exitFlushed, processTerminal, surviveClosedPipes } from "./terminal.ts";
import { ConfigError } from "../config/config-error.ts";
import { isOwlError } from "../errors/owl-error.ts";
import { paint, withoutTerminalControls } from "./text.ts";

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

/** The command line of this very process, to its end. */
export async function runProcess(): Promise<void> {
  surviveClosedPipes();
  await exitFlushed(await run(process.argv.slice(2), processTerminal()));
}

/** Says what went wrong and what to do, without a stack; returns the exit code. */
export function reportFailure(error: unknown, terminal: Terminal): number {
  const isUsers = error instanceof ConfigError || error instanceof UsageError;
  const message = error instanceof Error ? error.message : String(error);
  const lines = [`${paint("error:", "red", terminal.errColor)} ${withoutTerminalControls(message)}`];
  if (isOwlError(error)) lines.push(`hint: ${withoutTerminalControls(error.hint)}`);
  terminal.err(`${lines.join("\n")}\n`);
  return isUsers ? EXIT.usage : EXIT.failure;
}
