import * as z from "zod";
import type { Approval, Approvals } from "./approvals.ts";

export interface ApprovalAnswer {
  readonly id: string;
  readonly decision: "approve" | "deny";
  /** Who decides, as the ledger names them. */
  readonly by: string;
  readonly reason: string;
}

/** Where operators see and decide what waits, on whichever server it waits. */
export interface ApprovalService {
  /** As far as it is known; of other servers half a second ago. */
  known(): readonly Approval[];
  /** As it is now. */
  list(): Promise<readonly Approval[]>;
  /** Says whether the call still waited. */
  decide(answer: ApprovalAnswer): Promise<boolean>;
  close(): Promise<void>;
}

/** Of this server alone. */
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

/** A call that waits, as another process tells it. */
export const approvalSchema = z.object({
  id: z.string(),
  principal: z.string(),
  label: z.string().optional(),
  kind: z.string(),
  name: z.string(),
  /** Of the whole call, whatever is shown of it. */
  hash: z.string(),
  args: z.unknown(),
  /** Whether arguments were cut, or secrets taken out of them. */
  isCut: z.boolean().default(false),
  rule: z.string(),
  reason: z.string().optional(),
  traceId: z.string(),
  createdAtMs: z.number(),
  expiresAtMs: z.number(),
});
