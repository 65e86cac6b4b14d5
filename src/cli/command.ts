import type { Command } from "commander";
import type { FlagValues } from "./config-flags.ts";
import type { Terminal } from "./terminal.ts";
import { userInfo } from "node:os";

/** The input of a command. */
export interface CommandCall {
  readonly terminal: Terminal;
  /** The root of the command tree, for completion. */
  readonly root: Command;
  readonly args: readonly string[];
  readonly flags: FlagValues;
}

/** Runs one command and returns its exit code. */
export type CommandAction = (call: CommandCall) => Promise<number>;

/** The command line is invalid: exit code 2, no stack trace. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const EXIT = { ok: 0, failure: 1, usage: 2 } as const;

/**
 * The name under which decisions are recorded. It is the local user: only the owner of the data folder can reach the
 * server's control socket.
 */
export function operatorName(): string {
  return `local:${userInfo().username}`;
}
