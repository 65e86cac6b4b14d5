import { CommanderError } from "commander";
import { UsageError, EXIT } from "./command.ts";
import { buildProgram } from "./program.ts";
import { type Terminal, exitFlushed, processTerminal, surviveClosedPipes } from "./terminal.ts";
import { ConfigError } from "../config/config-error.ts";
import { isOwlError } from "../errors/owl-error.ts";
import { paint, withoutTerminalControls } from "./text.ts";

/** Runs one command line and returns its exit code. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = buildProgram({ terminal, finish: (code) => (exitCode = code) });
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has already printed its message. Help and version are not failures.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return reportFailure(error, terminal);
  }
}

/** Runs the command line of this process and exits. */
export async function runProcess(): Promise<void> {
  surviveClosedPipes();
  await exitFlushed(await run(process.argv.slice(2), processTerminal()));
}

/** Prints the error and its hint, without a stack trace. Returns the exit code. */
export function reportFailure(error: unknown, terminal: Terminal): number {
  const isUsers = error instanceof ConfigError || error instanceof UsageError;
  const message = error instanceof Error ? error.message : String(error);
  const lines = [`${paint("error:", "red", terminal.errColor)} ${withoutTerminalControls(message)}`];
  if (isOwlError(error)) lines.push(`hint: ${withoutTerminalControls(error.hint)}`);
  terminal.err(`${lines.join("\n")}\n`);
  return isUsers ? EXIT.usage : EXIT.failure;
}
