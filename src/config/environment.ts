import { homedir } from "node:os";
import { CONFIG_KEYS } from "./keys.ts";

/** What the user's own tools are configured by. */
export interface UserEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  /** By which interpreters of version managers are found. */
  readonly searchPath: string;
}

export function userEnvironment(): UserEnvironment {
  return { env: process.env, homeFolder: homedir(), searchPath: process.env["PATH"] ?? "" };
}

/**
 * What processes with the operator's own code inherit: the server's environment, since their passwords are there, but
 * none of the server's own secrets.
 */
export function workerEnvironment(): Record<string, string | undefined> {
  const own = new Set(CONFIG_KEYS.filter(({ secret }) => secret).flatMap(({ env }) => env));
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.has(name)));
}
