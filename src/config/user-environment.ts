import { homedir } from "node:os";

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
