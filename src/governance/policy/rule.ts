import { TimeExceeded } from "../../platform/within-time.ts";
import type { DeepReadonly } from "../../config/deep-freeze.ts";
import type { RuleConfig } from "../../config/governance-schema.ts";
import { compileExpression, type Expression, type Facts, looksAtLabel } from "./expression.ts";
import type { Confirmer } from "./terms.ts";

/** One entry of `rules` with its compiled expression. */
export interface CompiledRule {
  readonly id: string;
  readonly when: string;
  readonly effect: "allow" | "deny" | "confirm";
  readonly confirm: Confirmer;
  readonly reason: string | undefined;
  readonly holds: Expression;
}

export interface RuleVerdict {
  readonly rule: CompiledRule;
  readonly effect: CompiledRule["effect"];
  readonly reason: string | undefined;
}

export function compileRule({
  id,
  when,
  effect,
  confirm = "operator",
  reason,
}: DeepReadonly<RuleConfig>): CompiledRule {
  return { id, when, effect, confirm, reason, holds: compileExpression(when) };
}

type Effect = Pick<DeepReadonly<RuleConfig>, "effect" | "confirm">;

/**
 * A client can send any label, so a label must not exempt a call from later rules. Returns what is wrong with a rule
 * that would allow this, or `undefined`.
 */
export function looseningByLabel(
  { when, effect, confirm }: CompiledRule,
  behind: readonly Effect[],
): string | undefined {
  const isLoose = effect === "allow" || behind.some((other) => strictness(other) > strictness({ effect, confirm }));
  if (!isLoose || !looksAtLabel(when)) return undefined;
  return effect === "allow"
    ? "anyone can send any label, so it can only tighten: a rule with the effect allow cannot look at it; use principal, groups or claims"
    : "anyone can send any label, so it can only tighten: put this rule behind those that are stricter, or use principal, groups or claims";
}

function strictness({ effect, confirm }: Effect): number {
  if (effect === "deny") return 3;
  if (effect === "allow") return 0;
  return confirm === "client" ? 1 : 2;
}

/** For all rules of one call together: they block the event loop. */
const RULES_MS = 30;

/**
 * The first rule that holds decides. A rule whose evaluation fails denies the call: it may have been meant for this
 * call. Only a failed `allow` is skipped, since the rules after it still apply.
 */
export function firstVerdict(
  rules: readonly CompiledRule[],
  facts: () => Facts,
  measured?: Facts,
): RuleVerdict | undefined {
  if (rules.length === 0) return undefined;
  const known = facts();
  const end = performance.now() + RULES_MS;
  for (const rule of rules) {
    const { effect, reason } = rule;
    try {
      const limitMs = Math.max(1, end - performance.now());
      if (rule.holds(known, { limitMs, measured: measured ?? known })) return { rule, effect, reason };
    } catch (error) {
      if (effect === "allow") continue;
      return { rule, effect: "deny", reason: `the rule cannot be worked out for this call: ${whyNot(error)}` };
    }
  }
  return undefined;
}

/** The verdict of the rules on every call of a subject, whatever its arguments; `undefined` when it depends on them. */
export function standingVerdict(rules: readonly CompiledRule[], facts: () => Facts): RuleVerdict | undefined {
  const upTo = rules.findIndex(({ when }) => /\b(?:args|sent)\b/.test(when));
  return firstVerdict(upTo === -1 ? rules : rules.slice(0, upTo), facts);
}

function whyNot(error: unknown): string {
  return error instanceof TimeExceeded ? `the rules took longer than ${RULES_MS} ms` : firstLine(error);
}

export function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n", 1)[0] ?? text;
}
