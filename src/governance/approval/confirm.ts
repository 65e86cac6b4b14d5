import type { AskerPolicy } from "../policy/asker-policy.ts";
import type { Confirmation } from "../policy/terms.ts";
import { notApproved } from "../refusal.ts";
import type { Subject } from "../subject.ts";
import type { ApprovalRequest, Approvals } from "./approvals.ts";
import { argumentsHash } from "./arguments-hash.ts";

/** What the pipeline lends for the time of waiting. */
export interface Approver {
  readonly traceId: string;
  /** Puts the question to the person at the client. A client that cannot be asked has not said yes. */
  askClient(question: { readonly message: string; readonly key: string }): Promise<boolean>;
  /** Called while an operator is waited for; gives back how to stop. */
  whileWaiting(): () => void;
  /** Takes what to do when the caller is gone. */
  onGone(leave: () => void): void;
}

export interface ConfirmRequest {
  readonly confirm: Confirmation;
  readonly subject: Subject;
  readonly args: unknown;
  readonly policy: AskerPolicy;
  readonly approver: Approver;
}

const SHOWN_HASH_CHARS = 16;

/** Waits for the yes that the policy wants. Gives back how to return it, should the call have to come again. */
export async function confirmed(approvals: Approvals, request: ConfirmRequest): Promise<(() => void) | undefined> {
  const { confirm, subject, args, policy, approver } = request;
  const { rule, reason } = confirm;
  const { revision, asker } = policy;
  if (confirm.by === "client") {
    const hash = argumentsHash(asker.principal.id, subject.name, args).slice(0, SHOWN_HASH_CHARS);
    const why = reason === undefined ? "" : ` (${reason})`;
    const message = `Allow the ${subject.kind} "${subject.name}" to run with the arguments of this call?${why}`;
    if (await approver.askClient({ message, key: `owlclaw_approval_${hash}` })) return undefined;
    throw notApproved({ rule, revision, why: "client" });
  }
  const asked: ApprovalRequest = {
    principal: asker.principal.id,
    label: asker.label,
    name: subject.name,
    args,
    rule,
    reason,
    traceId: approver.traceId,
  };
  const stop = approver.whileWaiting();
  try {
    const verdict = await approvals.request(asked, (leave) => approver.onGone(leave));
    if (verdict.kind === "approved") return () => approvals.restore(asked, verdict.by);
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
