import * as z from "zod";
import { OwlError } from "../errors/owl-error.ts";
import type { Approval } from "../governance/approval/approvals.ts";
import type { SandboxCaller } from "../sandbox/sandbox-request.ts";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { ApiRoute } from "./api.ts";
import type { ApprovalNow } from "./contract.ts";
import { proposedChange } from "./proposed-change.ts";
import { bodyAs } from "./request-body.ts";

export interface ApprovalSources {
  readonly list: () => Promise<readonly Approval[]>;
  /** Recorded first, then done. Says whether the call still waited. @throws OwlError for the operator's own call. */
  readonly decide: (decision: {
    readonly id: string;
    readonly decision: "approve" | "deny";
    readonly by: string;
    readonly reason: string;
  }) => Promise<boolean>;
  readonly sandboxes: Sandboxes | undefined;
  /** Whose call it is, while it waits here. */
  readonly callerOf: (approval: Approval) => SandboxCaller | undefined;
}

const decisionSchema = z.strictObject({
  decision: z.enum(["approve", "deny"]),
  reason: z.string().max(500).default(""),
});

/** `approvals`: the calls that wait for somebody's yes. */
export function approvalRoutes(sources: ApprovalSources): readonly ApiRoute[] {
  return [
    {
      method: "GET",
      path: "approvals",
      answer: async () => ({
        approvals: await Promise.all((await sources.list()).map((each) => toShown(each, sources))),
      }),
    },
    {
      method: "POST",
      path: "approvals/{id}",
      answer: async ({ operator, parts: [id = ""], body }) => {
        const { decision, reason } = bodyAs(decisionSchema, body);
        if (!(await sources.decide({ id, decision, reason, by: operator.id }))) throw noApproval();
        return { id, decision };
      },
    },
  ];
}

function noApproval(): OwlError {
  return new OwlError("route_not_found", "no call waits under this id: it was decided, or its time is over");
}

async function toShown(approval: Approval, { sandboxes, callerOf }: ApprovalSources): Promise<ApprovalNow> {
  const { id, principal, label, name, rule, reason, traceId } = approval;
  const args = argsOf(approval);
  const sessionId = args["session_id"];
  const named = typeof sessionId === "string" ? sessionId : undefined;
  const sandbox = sandboxes?.findMeant(named, callerOf(approval));
  const change = await proposedChange(sandbox, name, args);
  // The id opens the sandbox for whoever has it: the page shows its name.
  const shown = sessionId === undefined ? {} : { session_id: sandbox?.plan.instanceId ?? "[redacted]" };
  return {
    id,
    principal,
    ...(label !== undefined && { label }),
    tool: name,
    args: { ...args, ...shown },
    rule,
    ...(reason !== undefined && { reason }),
    traceId,
    createdAt: new Date(approval.createdAtMs).toISOString(),
    expiresAt: new Date(approval.expiresAtMs).toISOString(),
    ...(sandbox !== undefined && { sandbox: sandbox.plan.instanceId }),
    ...(change !== undefined && { change }),
  };
}

function argsOf({ args }: Approval): Readonly<Record<string, unknown>> {
  return typeof args === "object" && args !== null ? { ...args } : {};
}
