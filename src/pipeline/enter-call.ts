import type { Approver } from "../governance/approval/confirm.ts";
import type { Governor, Grant } from "../governance/governor.ts";
import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import { rememberQuota } from "../governance/quota.ts";
import { approverOf } from "./approver.ts";
import type { GovernanceParts, GovernedWork } from "./governed-work.ts";
import { probeLedger } from "./probe-ledger.ts";

/** A call that may run. */
export interface Entered<I> {
  readonly input: I;
  readonly grant: Grant;
}

/**
 * Everything that stands before a call runs: open to the caller, arguments read, rules, limits, budget, approval. At once
 * where nobody has to be waited for, since each promise on this way is paid by every call. @throws OwlError
 */
export function enterCall<I, T>(
  parts: GovernanceParts,
  policy: AskerPolicy,
  work: GovernedWork<I, T>,
): Entered<I> | Promise<Entered<I>> {
  const { governor, ledger } = parts;
  if (governor.pauses.isStale || (!ledger.isHealthy && !governor.failOpen)) return enterLate(parts, policy, work);
  governor.pauses.check(work.call.caller.principal.id);
  return enterOpen(governor, policy, work);
}

/** Where first somebody has to say who is paused, or whether the ledger can be written again. */
async function enterLate<I, T>(
  { governor, ledger }: GovernanceParts,
  policy: AskerPolicy,
  work: GovernedWork<I, T>,
): Promise<Entered<I>> {
  if (governor.pauses.isStale) await governor.askWhoIsPaused();
  governor.pauses.check(work.call.caller.principal.id);
  if (!ledger.isHealthy && !governor.failOpen) await probeLedger(ledger, policy, work.call);
  return enterOpen(governor, policy, work);
}

function enterOpen<I, T>(
  governor: Governor,
  policy: AskerPolicy,
  work: GovernedWork<I, T>,
): Entered<I> | Promise<Entered<I>> {
  governor.assertOpen(policy, work.subject);
  let checked: I | Promise<I>;
  try {
    checked = work.check();
  } catch (mistake) {
    return countMistake(governor, policy, { work, mistake });
  }
  if (!(checked instanceof Promise)) return admit(governor, policy, { work, input: checked });
  return checked.then(
    (input) => admit(governor, policy, { work, input }),
    (mistake: unknown) => countMistake(governor, policy, { work, mistake }),
  );
}

function admit<I, T>(
  governor: Governor,
  policy: AskerPolicy,
  { work, input }: { readonly work: GovernedWork<I, T>; readonly input: I },
): Entered<I> | Promise<Entered<I>> {
  const { subject, call, judged, toJudged, assertShown } = work;
  const approver = (): Approver => ({ ...approverOf(call), assertShown });
  const grant = governor.admit(policy, { subject, args: judged ?? toJudged?.(input) ?? input, approver });
  return grant instanceof Promise ? grant.then((given) => ({ input, grant: given })) : { input, grant };
}

/** Arguments that cannot be read are limited like everything else. */
async function countMistake<I, T>(
  governor: Governor,
  policy: AskerPolicy,
  { work, mistake }: { readonly work: GovernedWork<I, T>; readonly mistake: unknown },
): Promise<never> {
  rememberQuota(mistake, await governor.count(policy, work.subject));
  throw mistake;
}
