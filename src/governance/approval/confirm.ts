import type { AskerPolicy } from "../policy/asker-policy.ts";
import type { Confirmation } from "../policy/terms.ts";
import { leftWaiting, notApproved } from "../refusal.ts";
import type { Subject } from "../subject.ts";
import { type ApprovalRequest, type Approvals, argumentsHash } from "./approvals.ts";

/** What the pipeline lends for the time of waiting. */
export interface Approver {
  readonly traceId: string;
  /** Puts the question to the person at the client. A client that cannot be asked has not said yes. */
  askClient(question: { readonly message: string; readonly key: string }): Promise<boolean>;
  /** Called while an operator is waited for; gives back how to stop. */
  whileWaiting(): () => void;
  /** Takes what to do when the caller is gone. */
  onGone(leave: () => void): void;
  /** Throws where the arguments do not show to an operator what the yes would be for. */
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
/** So that whoever carries the answer knows that it is good for one call. */
export const APPROVAL_KEY_PREFIX = "owlclaw_approval_";

/** Waits for the yes that the policy wants. Gives back how to return it, should the call have to come again. */
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
