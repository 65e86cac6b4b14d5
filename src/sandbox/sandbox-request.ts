import type { Principal } from "../auth/principal.ts";
import type { Flavor } from "./flavors.ts";

/** Who asks, and on which MCP session. */
export interface SandboxCaller {
  readonly principal: Principal;
  readonly sessionId: string | undefined;
}

/** What a new sandbox should be; what is left out is as configured. */
export interface SandboxRequest {
  readonly template?: string | undefined;
  readonly flavor?: Flavor | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly isOffline?: boolean | undefined;
  /** Only these of the hosts that the operator allows. */
  readonly network?: readonly string[] | undefined;
  readonly idleMs?: number | undefined;
  readonly maxAgeMs?: number | undefined;
}
