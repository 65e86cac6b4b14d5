import * as z from "zod";
import type { Approval, Approvals } from "./approvals.ts";

export interface ApprovalAnswer {
  readonly id: string;
  readonly decision: "approve" | "deny";
  /** The operator who decides, as the ledger names them. */
  readonly by: string;
  readonly reason: string;
}

/** Lists and decides the calls that wait for approval, on whichever server they wait. */
export interface ApprovalService {
  /** The last known state; that of other servers is half a second old. */
  known(): readonly Approval[];
  /** The current state. */
  list(): Promise<readonly Approval[]>;
  /** Returns whether the call was still waiting. */
  decide(answer: ApprovalAnswer): Promise<boolean>;
  close(): Promise<void>;
}

/** The approvals of this server alone. */
export function localApprovals(approvals: Approvals): ApprovalService {
  return {
    known: () => approvals.list(),
    list: async () => approvals.list(),
    decide: async (answer) => decideHere(approvals, answer),
    close: async () => undefined,
  };
}

export function decideHere(approvals: Approvals, { id, decision, by, reason }: ApprovalAnswer): boolean {
  return decision === "approve" ? approvals.approve(id, by) : approvals.deny(id, by, reason);
}

/** A waiting call as another process sends it. */
export const approvalSchema = z.object({
  id: z.string(),
  principal: z.string(),
  label: z.string().optional(),
  kind: z.string(),
  name: z.string(),
  /** Covers the whole call, even when `args` is cut. */
  hash: z.string(),
  args: z.unknown(),
  /** Whether arguments were cut or secrets removed from them. */
  isCut: z.boolean().default(false),
  rule: z.string(),
  reason: z.string().optional(),
  traceId: z.string(),
  createdAtMs: z.number(),
  expiresAtMs: z.number(),
});
