import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import type { Ledger } from "../governance/ledger/ledger.ts";
import type { Call } from "./call.ts";

/** Nothing runs that could not be recorded: whether that works again is tried before, not after. */
export async function probeLedger(ledger: Ledger, { revision }: AskerPolicy, { caller, traceId }: Call): Promise<void> {
  await ledger.append({
    time: Date.now(),
    principal: caller.principal.id,
    label: caller.label,
    transport: caller.transport,
    kind: "admin",
    name: "ledger.probe",
    calledAs: "ledger.probe",
    args: {},
    result: undefined,
    outcome: "ok",
    errorKind: undefined,
    decision: "allow",
    rule: "default",
    policyRevision: revision,
    durationMs: 0,
    costMicros: 0,
    traceId,
    sandbox: undefined,
    flags: [],
  });
}
