import * as z from "zod";
import type { Approval } from "../governance/approval/approvals.ts";
import type { OpenGovernance } from "./open-governance.ts";

/** What commands on the same machine may ask about governance. */
export const operatorRequests = [
  z.strictObject({ do: z.literal("approvals") }),
  z.strictObject({
    do: z.literal("decide"),
    id: z.string().max(64),
    decision: z.enum(["approve", "deny"]),
    by: z.string().min(1).max(256),
    reason: z.string().max(500).default(""),
  }),
] as const;

export type OperatorRequest = z.output<(typeof operatorRequests)[number]>;

export async function answerOperator(
  governance: OpenGovernance,
  request: OperatorRequest,
): Promise<Record<string, unknown>> {
  if (request.do === "approvals") return { approvals: governance.governor.approvals.list() };
  return { decided: await decideApproval(governance, request) };
}

export interface ApprovalDecision {
  readonly id: string;
  readonly decision: "approve" | "deny";
  /** Who decides, as the ledger names them. */
  readonly by: string;
  readonly reason: string;
}

/** The decision goes into the ledger first: what cannot be recorded is not decided. */
export async function decideApproval(
  { governor, ledger }: Pick<OpenGovernance, "governor" | "ledger">,
  { id, decision, by, reason }: ApprovalDecision,
): Promise<boolean> {
  const approval = governor.approvals.get(id);
  if (approval === undefined) return false;
  await ledger.append({
    time: Date.now(),
    principal: by,
    label: undefined,
    transport: "local",
    kind: "admin",
    name: `approval.${decision}`,
    calledAs: `approval.${decision}`,
    args: { approval: id, ...summary(approval), reason },
    result: undefined,
    outcome: "ok",
    errorKind: undefined,
    decision: "allow",
    rule: approval.rule,
    policyRevision: governor.revision,
    durationMs: 0,
    costMicros: 0,
    traceId: approval.traceId,
    sandbox: undefined,
    flags: [],
  });
  return decision === "approve" ? governor.approvals.approve(id, by) : governor.approvals.deny(id, by, reason);
}

function summary({ principal, name, args }: Approval): Record<string, unknown> {
  return { principal, name, args };
}
