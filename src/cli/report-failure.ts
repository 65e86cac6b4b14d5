import { ConfigError } from "../config/config-error.ts";
import { isOwlError } from "../errors/owl-error.ts";
import { EXIT } from "./exit-code.ts";
import type { Terminal } from "./terminal.ts";
import { paint, withoutTerminalControls } from "./text.ts";
import { UsageError } from "./usage-error.ts";

/** Says what went wrong and what to do, without a stack; returns the exit code. */
export function reportFailure(error: unknown, terminal: Terminal): number {
  const isUsers = error instanceof ConfigError || error instanceof UsageError;
  const message = error instanceof Error ? error.message : String(error);
  const lines = [`${paint("error:", "red", terminal.errColor)} ${withoutTerminalControls(message)}`];
  if (isOwlError(error)) lines.push(`hint: ${withoutTerminalControls(error.hint)}`);
  terminal.err(`${lines.join("\n")}\n`);
  return isUsers ? EXIT.usage : EXIT.failure;
}
