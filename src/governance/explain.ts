import type { AskerPolicy, Watched } from "./policy/asker-policy.ts";
import type { Policy } from "./policy/policy.ts";
import type { RuleVerdict } from "./policy/rule.ts";
import { fromMicros, stricter, type Confirmation } from "./policy/terms.ts";
import type { Subject } from "./subject.ts";

/** A hypothetical call to explain. */
export interface Supposed {
  readonly client: string;
  readonly groups: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  readonly label: string | undefined;
  readonly subject: Subject;
  /** As rules see them: parsed with defaults, or as given when they are not valid. */
  readonly args: unknown;
  /** Why the call would fail before any rule checks its arguments. */
  readonly mistake?: string | undefined;
}

/** The call without its caller. */
export type SupposedCall = Pick<Supposed, "subject" | "args" | "mistake">;

export interface Explanation {
  readonly policy: string;
  readonly operation: string;
  readonly decision: "allow" | "deny" | "confirm";
  readonly rule: string;
  readonly reason: string | undefined;
  /** Set when the call would fail even if it is allowed: its arguments are not valid. */
  readonly mistake: string | undefined;
  readonly visible: boolean;
  readonly confirm: "operator" | "client" | undefined;
  readonly limits: readonly { readonly rule: string; readonly limit: number; readonly counts: string }[];
  /** What is reserved before the call runs, in units. */
  readonly reserves: number;
  /** What the evaluated rules read: with other arguments or claims they might decide otherwise. */
  readonly lookedAt: readonly Watched[];
}

/** The decision of the policy on a call, and the rule behind it. Current counts are not considered. */
export function explain(policy: Policy, supposed: Supposed): Explanation {
  const { client, groups, claims, label, subject, args, mistake } = supposed;
  const known = groups.length === 0 ? claims : { ...claims, [policy.config.groupsClaim]: groups };
  const asker = policy.for({ principal: { id: client, scopes: [], claims: known }, label });
  const terms = asker.termsOf(subject);
  const { rule, reason, decision, confirm, lookedAt } = decide(asker, subject, args);
  return {
    policy: policy.revision,
    operation: subject.name,
    decision,
    rule,
    reason,
    mistake,
    visible: terms.hidden === undefined && terms.denied === undefined,
    confirm,
    limits: terms.counters.flatMap(({ key, perMinute, perDay, concurrency, budget }) => [
      ...[perMinute, perDay, concurrency].flatMap((cap) => (cap === undefined ? [] : [{ ...cap, counts: key }])),
      ...(budget === undefined ? [] : [{ rule: budget.rule, limit: fromMicros(budget.limit), counts: key }]),
    ]),
    reserves: fromMicros(terms.reserveMicros),
    lookedAt,
  };
}

type Decision = Pick<Explanation, "decision" | "rule" | "reason" | "confirm">;

function decide(asker: AskerPolicy, subject: Subject, args: unknown): Decision & Pick<Explanation, "lookedAt"> {
  const { verdict, lookedAt } = asker.judgeWatched(subject, args);
  const { hidden, denied } = asker.termsOf(subject);
  const objection = hidden ?? denied;
  // Layers apply before rules and read no claim but the groups. `denied` includes what the rules deny to every call.
  const isLayers = objection !== undefined && !objection.rule.startsWith("rules.");
  return { ...decideBy(asker, subject, verdict), lookedAt: isLayers ? [] : [...lookedAt] };
}

function decideBy(asker: AskerPolicy, subject: Subject, verdict: RuleVerdict | undefined): Decision {
  const { hidden, denied, confirm, maxCost, reserveMicros } = asker.termsOf(subject);
  const objection = hidden ?? denied;
  if (objection !== undefined) return { ...objection, decision: "deny", confirm: undefined };
  const rule = verdict === undefined ? "default" : `rules.${verdict.rule.id}`;
  if (verdict?.effect === "deny") return { decision: "deny", rule, reason: verdict.reason, confirm: undefined };
  if (maxCost !== undefined && reserveMicros > maxCost.limit)
    return { decision: "deny", rule: maxCost.rule, reason: "the call may cost too much", confirm: undefined };
  const asked: Confirmation | undefined =
    verdict?.effect === "confirm" ? { by: verdict.rule.confirm, rule, reason: verdict.reason } : undefined;
  const needed = stricter(confirm, asked);
  if (needed !== undefined)
    return { decision: "confirm", rule: needed.rule, reason: needed.reason, confirm: needed.by };
  return { decision: "allow", rule, reason: verdict?.reason, confirm: undefined };
}
