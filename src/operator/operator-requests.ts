import * as z from "zod";
import { OwlError } from "../errors/owl-error.ts";
import type { Approval } from "../governance/approval/approvals.ts";
import type { Governance } from "../call/governed-work.ts";
import { type ActRecord, type OperatorAct, type OperatorTransport, recordAct } from "../call/operator-acts.ts";
import { pauseService } from "./pause-routes.ts";

/** The requests about governance that the control socket accepts. */
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
  governance: Governance,
  request: OperatorRequest,
): Promise<Record<string, unknown>> {
  const pauses = pauseService(governance, "local");
  switch (request.do) {
    case "approvals":
      return { approvals: await governance.approvals.list() };
    case "decide":
      return { decided: await decideApproval(governance, { ...request, transport: "local" }) };
    case "paused":
      return { paused: pauses.list() };
    case "pause":
      await pauses.pause({ ...request, client: request.client });
      return { paused: pauses.list() };
    case "resume":
      return { resumed: await pauses.resume({ by: request.by, client: request.client }) };
  }
}

export interface ApprovalDecision {
  readonly id: string;
  readonly decision: "approve" | "deny";
  /** The operator, as the ledger names them. */
  readonly by: string;
  readonly reason: string;
  readonly transport: OperatorTransport;
}

/** Ids of approvals whose decision is being recorded. A second decision meanwhile is rejected. */
const beingDecided = new Set<string>();

export interface DecisionParts extends ActRecord {
  readonly approvals: Pick<Governance["approvals"], "list" | "decide">;
}

/**
 * Records the decision in the ledger before it applies it: a decision that cannot be recorded is not made.
 * @throws OwlError when the operator decides on a call of their own.
 */
export async function decideApproval(
  { governor, ledger, approvals }: DecisionParts,
  { id, decision, by, reason, transport }: ApprovalDecision,
): Promise<boolean> {
  const approval = (await approvals.list()).find((each) => each.id === id);
  if (approval === undefined || beingDecided.has(id)) return false;
  if (approval.principal === by)
    throw new OwlError("forbidden", "Nobody approves a call of their own.", {
      facts: { reason: "own_call" },
      hint: "ask another operator",
    });
  const act: OperatorAct = {
    by,
    transport,
    name: `approval.${decision}`,
    args: { approval: id, ...summary(approval), reason },
    rule: approval.rule,
    traceId: approval.traceId,
  };
  beingDecided.add(id);
  try {
    await recordAct({ governor, ledger }, act);
    const isDecided = await approvals.decide({ id, decision, by, reason });
    if (!isDecided) await recordAct({ governor, ledger }, { ...act, failure: tooLate() });
    return isDecided;
  } finally {
    beingDecided.delete(id);
  }
}

function tooLate(): OwlError {
  return new OwlError("route_not_found", "the call had stopped waiting when the decision was on record");
}

function summary({ principal, name, args }: Approval): Record<string, unknown> {
  return { principal, name, args };
}
