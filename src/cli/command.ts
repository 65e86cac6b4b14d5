import type { Command } from "commander";
import type { FlagValues } from "./config-flags.ts";
import type { Terminal } from "./terminal.ts";
import { userInfo } from "node:os";

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

/** The command line is wrong: exit code 2, no stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const EXIT = { ok: 0, failure: 1, usage: 2 } as const;

/** Who acts is the user of the machine: only the owner of the data folder can reach the server at all. */
export function operatorName(): string {
  return `local:${userInfo().username}`;
}
