import { CONFIG_KEYS } from "./keys.ts";

/**
 * What processes with the operator's own code inherit: the server's environment, since their passwords are there, but
 * none of the server's own secrets.
 */
export function workerEnvironment(): Record<string, string | undefined> {
  const own = new Set(CONFIG_KEYS.filter(({ secret }) => secret).flatMap(({ env }) => env));
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.has(name)));
}
