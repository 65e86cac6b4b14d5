import type { Approver } from "../governance/approval/confirm.ts";
import type { BeginFacts, Grant } from "../governance/governor.ts";
import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import { rememberQuota } from "../governance/quota.ts";
import type { Draft } from "../governance/ledger/row.ts";
import { approverOf } from "./approver.ts";
import type { GovernanceParts, GovernedWork } from "./governed-work.ts";
import { probeLedger } from "./probe-ledger.ts";

/** A call that may run. */
export interface Entered<I> {
  readonly input: I;
  readonly grant: Grant;
}

export interface Entering<I, T> {
  readonly policy: AskerPolicy;
  readonly work: GovernedWork<I, T>;
  /** The row of the call in case this process dies before the call ends. */
  readonly draft: (facts: BeginFacts) => Draft;
}

/** Everything that stands before a call runs: open to the caller, arguments read, rules, limits, budget, approval. @throws OwlError */
export async function enterCall<I, T>(
  { governor, ledger }: GovernanceParts,
  { policy, work, draft }: Entering<I, T>,
): Promise<Entered<I>> {
  if (governor.pauses.isStale) await governor.askWhoIsPaused();
  governor.pauses.check(work.call.caller.principal.id);
  if (!ledger.isHealthy && !governor.failOpen) await probeLedger(ledger, policy, work.call);
  governor.assertOpen(policy, work.subject);
  let input: I;
  try {
    const checked = work.check();
    input = checked instanceof Promise ? await checked : checked;
  } catch (mistake) {
    // Arguments that cannot be read are limited like everything else.
    rememberQuota(mistake, await governor.count(policy, work.subject));
    throw mistake;
  }
  const { subject, call, judged, toJudged, assertShown } = work;
  const approver = (): Approver => ({ ...approverOf(call), assertShown });
  const args = judged ?? toJudged?.(input) ?? input;
  return { input, grant: await governor.admit(policy, { subject, args, approver, draft }) };
}
