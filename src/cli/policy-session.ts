import { loadConfig } from "../config/load.ts";
import type { LoadedConfig } from "../config/load.ts";
import { PolicyError } from "../governance/policy/policy-error.ts";
import type { Policy } from "../governance/policy/policy.ts";
import type { LocalServer } from "../server/local-client.ts";
import type { CommandCall } from "./command-action.ts";
import { quietLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";
import { UsageError } from "./usage-error.ts";

export interface PolicySession {
  readonly loaded: LoadedConfig;
  readonly policy: Policy;
  readonly server: Pick<LocalServer, "named">;
}

/** The policy, and the tools that it speaks of; nothing is started and nothing recorded. */
export async function withPolicy<T>(
  { terminal, flags }: CommandCall,
  candidate: string | undefined,
  use: (session: PolicySession) => Promise<T>,
): Promise<T> {
  const loaded = await loadConfig(toLoadOptions(flags));
  const { policyOf } = await import("../server/policy-desk.ts");
  const policy = await policyOf(loaded.config, candidate).catch((error: unknown) => {
    throw error instanceof PolicyError ? new UsageError(`the policy cannot be used:\n${error.message}`) : error;
  });
  const { openLocal } = await import("../server/local-client.ts");
  const server = await openLocal({ loaded, logger: quietLogger(loaded, terminal), isGoverned: false });
  try {
    return await use({ loaded, policy, server });
  } finally {
    await server.close();
  }
}

export function textFlag(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
