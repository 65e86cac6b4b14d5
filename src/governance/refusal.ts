import { OwlError } from "../errors/owl-error.ts";
import type { LimitName, LimitRefusal } from "./store/governance-store.ts";
import type { Cap, Objection } from "./policy/terms.ts";
import { fromMicros } from "./policy/terms.ts";
import type { Subject } from "./subject.ts";

const MAX_NAME_CHARS = 128;

/**
 * Refuses by a rule of the policy. What is hidden is refused in the same words whether it exists or not, and under the
 * name that the caller used: another name would reveal that it exists.
 */
export function deniedBy(
  { rule, reason }: Objection,
  { kind, name, calledAs = name }: Subject,
  revision: string,
): OwlError {
  const why = reason === undefined ? "" : `: ${reason}`;
  const shown = calledAs.slice(0, MAX_NAME_CHARS);
  return new OwlError("governance_denied", `the policy refuses the ${kind} "${shown}"${why}`, {
    facts: { rule, policy: revision, ...(reason !== undefined && { reason }) },
    hint: `ask the operator to change ${rule}`,
  });
}

const WHAT: Readonly<Record<LimitName, string>> = {
  callsPerMinute: "calls in 60 seconds",
  callsPerDay: "calls in a day",
  concurrency: "calls at a time",
  monthlyBudget: "units of budget in a month",
};

/** Refuses because a limit is reached, and says when to retry. */
export function limitedBy(refusal: LimitRefusal, revision: string, reserveMicros: number): OwlError {
  const { name, rule, retryAfterMs, resetsAtMs } = refusal;
  const isMoney = name === "monthlyBudget";
  const limit = isMoney ? fromMicros(refusal.limit) : refusal.limit;
  const used = isMoney ? fromMicros(refusal.used) : refusal.used;
  const retryAfter = retryAfterMs === undefined ? 1 : Math.max(1, Math.ceil(retryAfterMs / 1000));
  const wait = name === "concurrency" ? "wait until one of your calls has ended" : `try again in ${retryAfter} s`;
  return new OwlError("governance_denied", `the limit of ${limit} ${WHAT[name]} is reached (${rule})`, {
    facts: {
      rule,
      policy: revision,
      reason: isMoney ? "budget" : "rate",
      limit,
      used,
      remaining: Math.max(0, limit - used),
      ...(isMoney && { needed: fromMicros(reserveMicros) }),
      ...(resetsAtMs !== undefined && { reset: new Date(resetsAtMs).toISOString() }),
      retry_after: retryAfter,
    },
    retryable: true,
    hint: wait,
  });
}

/** Refuses because the call alone would cost too much. */
export function tooDear({ limit, rule }: Cap, needMicros: number, revision: string): OwlError {
  const needed = fromMicros(needMicros);
  return new OwlError(
    "governance_denied",
    `the call may cost ${needed}, and ${fromMicros(limit)} is the most (${rule})`,
    {
      facts: { rule, policy: revision, reason: "budget", limit: fromMicros(limit), needed },
      hint: `use something cheaper, or ask the operator to raise ${rule}`,
    },
  );
}

/** The start of the message for every call that was not approved. */
export const UNAPPROVED_MESSAGE = "the call needs an approval";

export interface Unapproved {
  readonly rule: string;
  readonly revision: string;
  readonly why: "denied" | "expired" | "overloaded" | "client";
  readonly detail?: string | undefined;
  readonly approvalId?: string | undefined;
}

/** The caller cancelled the call while it waited for an approval: this is not a refusal. */
export function leftWaiting(rule: string): OwlError {
  return new OwlError("cancelled", "the call was cancelled while it waited for an approval", { facts: { rule } });
}

const UNAPPROVED: Readonly<Record<Unapproved["why"], string>> = {
  denied: "the operator said no",
  expired: "nobody approved it in time",
  overloaded: "too many calls wait for an approval already",
  client: "the person at the client did not say yes",
};

export function notApproved({ rule, revision, why, detail, approvalId }: Unapproved): OwlError {
  const reason = detail === undefined || detail === "" ? UNAPPROVED[why] : `${UNAPPROVED[why]}: ${detail}`;
  return new OwlError("governance_denied", `${UNAPPROVED_MESSAGE}, and ${reason}`, {
    facts: { rule, policy: revision, reason, ...(approvalId !== undefined && { approval: approvalId }) },
    retryable: why === "expired" || why === "overloaded",
    hint: why === "denied" ? "do not call it again as it is" : "ask for the approval and call it again",
  });
}
