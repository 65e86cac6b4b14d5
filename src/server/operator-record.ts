import { newTraceId } from "../protocol/trace-id.ts";
import type { OpenGovernance } from "./open-governance.ts";

/** Something that an operator does. */
export interface OperatorAct {
  /** Who, as the ledger names them. */
  readonly by: string;
  /** `approval.approve`, `client.pause`, `operator.takeover`. */
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly rule?: string;
  readonly traceId?: string;
  readonly sandbox?: string;
}

/** Written before it is done: what cannot be recorded is not done. */
export async function recordAct(
  { ledger, governor }: Pick<OpenGovernance, "governor" | "ledger">,
  { by, name, args, rule = "default", traceId = newTraceId(), sandbox }: OperatorAct,
): Promise<void> {
  await ledger.append({
    time: Date.now(),
    principal: by,
    label: undefined,
    transport: "local",
    kind: "admin",
    name,
    calledAs: name,
    args,
    result: undefined,
    outcome: "ok",
    errorKind: undefined,
    decision: "allow",
    rule,
    policyRevision: governor.revision,
    durationMs: 0,
    costMicros: 0,
    traceId,
    sandbox,
    flags: [],
  });
}
