import type { Command } from "commander";
import type { FlagValues } from "./config-flags.ts";
import type { Terminal } from "./terminal.ts";

/** What a command gets to work with. */
export interface CommandCall {
  readonly terminal: Terminal;
  /** The whole tree of commands, for completion. */
  readonly root: Command;
  readonly args: readonly string[];
  readonly flags: FlagValues;
}

/** Does the work of one command and returns its exit code. */
export type CommandAction = (call: CommandCall) => Promise<number>;
