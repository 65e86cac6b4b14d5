import type { Flavor } from "./flavors.ts";
import type { Sandbox, SandboxState } from "./sandbox.ts";

/** A sandbox as lists show it. */
export interface SandboxSummary {
  readonly id: string;
  readonly ownerId: string;
  readonly instanceId: string;
  readonly runtime: string;
  readonly state: SandboxState;
  readonly template: string;
  readonly flavor: Flavor;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number;
  readonly endsAtMs: number;
  readonly takenOverBy: string | undefined;
}

export function toSummary({
  facts,
  plan,
  runtime,
  state,
  lastUsedAtMs,
  endsAtMs,
  takenOverBy,
}: Sandbox): SandboxSummary {
  const { id, ownerId, labels, createdAtMs } = facts;
  const { instanceId, template, flavor } = plan;
  const times = { createdAtMs, lastUsedAtMs, endsAtMs };
  return { id, ownerId, instanceId, runtime, state, template, flavor, labels, ...times, takenOverBy };
}
