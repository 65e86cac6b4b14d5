import { homedir } from "node:os";
import { CONFIG_KEYS } from "./keys.ts";

/** The environment of the user who runs the command. */
export interface UserEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  /** PATH, which leads to interpreters of version managers. */
  readonly searchPath: string;
}

export function userEnvironment(): UserEnvironment {
  return { env: process.env, homeFolder: homedir(), searchPath: process.env["PATH"] ?? "" };
}

/**
 * The environment for processes that run the operator's code. It contains the server's environment, because handlers
 * read their credentials there, but none of the server's own secrets.
 */
export function workerEnvironment(): Record<string, string | undefined> {
  const own = new Set(CONFIG_KEYS.filter(({ secret }) => secret).flatMap(({ env }) => env));
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.has(name)));
}
