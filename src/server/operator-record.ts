import type { OwlError } from "../errors/owl-error.ts";
import type { Governor } from "../governance/governor.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { newTraceId } from "../protocol/trace-id.ts";

/** The way that an operator came: a page or an API, or a command on the same machine. */
export type OperatorDoor = "http" | "local";

/** Something that an operator does. */
export interface OperatorAct {
  /** Who, as the ledger names them. */
  readonly by: string;
  readonly transport: OperatorDoor;
  /** `approval.approve`, `client.pause`, `operator.takeover`. */
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly rule?: string;
  readonly traceId?: string;
  readonly sandbox?: string;
  /** Why nothing came of it, where that is known. */
  readonly failure?: OwlError;
}

/** Where it is written. */
export interface ActRecord {
  readonly ledger: Pick<Ledger, "append">;
  readonly governor: Pick<Governor, "revision">;
}

/** Written before it is done: what cannot be recorded is not done. */
export async function recordAct(
  { ledger, governor }: ActRecord,
  { by, transport, name, args, rule = "default", traceId = newTraceId(), sandbox, failure }: OperatorAct,
): Promise<void> {
  await ledger.append({
    time: Date.now(),
    principal: by,
    label: undefined,
    transport,
    kind: "admin",
    name,
    calledAs: name,
    args,
    result: failure && { error: failure.message },
    outcome: failure === undefined ? "ok" : "failed",
    errorKind: failure?.kind,
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
