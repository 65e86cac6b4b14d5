import type { AskerPolicy } from "../policy/asker-policy.ts";
import type { Confirmation } from "../policy/terms.ts";
import { leftWaiting, notApproved } from "../refusal.ts";
import type { Subject } from "../subject.ts";
import { type ApprovalRequest, type Approvals, argumentsHash } from "./approvals.ts";

/** What the pipeline provides while a call waits for approval. */
export interface Approver {
  readonly traceId: string;
  /** Asks the user of the client. False when the client cannot be asked. */
  askClient(question: { readonly message: string; readonly key: string }): Promise<boolean>;
  /** Called when the wait for an operator begins. Returns a function that ends the wait. */
  whileWaiting(): () => void;
  /** Registers a function to call when the caller stops waiting. */
  onGone(leave: () => void): void;
  /** Throws when the arguments do not show an operator what the approval would be for. */
  assertShown?: ((rule: string) => void) | undefined;
}

export interface ConfirmRequest {
  readonly confirm: Confirmation;
  readonly subject: Subject;
  readonly args: unknown;
  readonly policy: AskerPolicy;
  readonly approver: Approver;
}

const SHOWN_HASH_CHARS = 16;
/** Marks the key of an answer that is valid for one call only. */
export const APPROVAL_KEY_PREFIX = "owlclaw_approval_";

/**
 * Waits for the approval that the policy requires. Returns a function that restores it, in case the call must be
 * repeated.
 */
export async function confirmed(approvals: Approvals, request: ConfirmRequest): Promise<(() => void) | undefined> {
  const { confirm, subject, args, policy, approver } = request;
  const { kind, name } = subject;
  const { rule, reason } = confirm;
  const { revision, asker } = policy;
  if (confirm.by === "client") {
    const hash = argumentsHash({ principal: asker.principal.id, kind, name, args }).slice(0, SHOWN_HASH_CHARS);
    const why = reason === undefined ? "" : ` (${reason})`;
    const message = `Allow the ${kind} "${name}" to run with the arguments of this call?${why}`;
    if (await approver.askClient({ message, key: `${APPROVAL_KEY_PREFIX}${hash}` })) return undefined;
    throw notApproved({ rule, revision, why: "client" });
  }
  approver.assertShown?.(rule);
  const asked: ApprovalRequest = {
    principal: asker.principal.id,
    label: asker.label,
    kind,
    name,
    args,
    rule,
    reason,
    traceId: approver.traceId,
  };
  const stop = approver.whileWaiting();
  try {
    const verdict = await approvals.request(asked, (leave) => approver.onGone(leave));
    if (verdict.kind === "approved") return () => approvals.restore(asked, verdict);
    if (verdict.kind === "gone") throw leftWaiting(rule);
    throw notApproved({
      rule,
      revision,
      why: verdict.kind,
      ...(verdict.kind === "denied" && { detail: verdict.reason }),
    });
  } finally {
    stop();
  }
}
