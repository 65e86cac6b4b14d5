import * as z from "zod";
import type { Approval } from "../governance/approval/approvals.ts";
import type { OpenGovernance } from "./open-governance.ts";
import { recordAct } from "./operator-record.ts";
import { pauseDesk } from "./pause-desk.ts";

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
  z.strictObject({ do: z.literal("paused") }),
  z.strictObject({
    do: z.literal("pause"),
    client: z.string().min(1).max(256).optional(),
    by: z.string().min(1).max(256),
    reason: z.string().max(500).default(""),
    cancel: z.boolean().default(false),
  }),
  z.strictObject({
    do: z.literal("resume"),
    client: z.string().min(1).max(256).optional(),
    by: z.string().min(1).max(256),
  }),
] as const;

export type OperatorRequest = z.output<(typeof operatorRequests)[number]>;

export async function answerOperator(
  governance: OpenGovernance,
  request: OperatorRequest,
): Promise<Record<string, unknown>> {
  const desk = pauseDesk(governance);
  switch (request.do) {
    case "approvals":
      return { approvals: governance.governor.approvals.list() };
    case "decide":
      return { decided: await decideApproval(governance, request) };
    case "paused":
      return { paused: desk.list() };
    case "pause":
      await desk.pause({ ...request, client: request.client });
      return { paused: desk.list() };
    case "resume":
      return { resumed: await desk.resume({ by: request.by, client: request.client }) };
  }
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
  await recordAct(
    { governor, ledger },
    {
      by,
      name: `approval.${decision}`,
      args: { approval: id, ...summary(approval), reason },
      rule: approval.rule,
      traceId: approval.traceId,
    },
  );
  return decision === "approve" ? governor.approvals.approve(id, by) : governor.approvals.deny(id, by, reason);
}

function summary({ principal, name, args }: Approval): Record<string, unknown> {
  return { principal, name, args };
}
