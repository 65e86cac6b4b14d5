import { isOwlError } from "../errors/owl-error.ts";
import type { Draft } from "./ledger/row.ts";
import type { CallId, Spending } from "./ledger/store.ts";
import type { Alerts } from "../telemetry/alerts.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan } from "../telemetry/tracing/active-span.ts";
import type { Approvals } from "./approval/approvals.ts";
import { type Approver, type ConfirmRequest, confirmed } from "./approval/confirm.ts";
import { BudgetAlerts, crossingsOf } from "./budget-alerts.ts";
import { type Consumption, costOf } from "./quota.ts";
import { FloodGuard, floodLimitFor } from "./flood-guard.ts";
import type { AskerPolicy } from "./policy/asker-policy.ts";
import type { PolicySource } from "./policy/policy-source.ts";
import type { RuleVerdict } from "./policy/rule.ts";
import { type Confirmation, stricter, type Terms, toMicros } from "./policy/terms.ts";
import type { Pauses } from "./pauses.ts";
import { deniedBy, limitedBy, tooDear } from "./refusal.ts";
import type { Admissions } from "./store/admissions.ts";
import type { Admission, Lease, Used, AdmitRequest } from "./store/governance-store.ts";
import type { Asker, Subject } from "./subject.ts";

export interface GovernorOptions {
  readonly source: PolicySource;
  readonly calls: Pick<Admissions, "admit" | "usage" | "release" | "begin">;
  readonly approvals: Approvals;
  readonly pauses: Pauses;
  readonly logger: Logger;
  /** Receives the alerts about budgets that are nearly spent. */
  readonly alerts: Pick<Alerts, "send">;
  /** Whether calls run when they cannot be counted. */
  readonly failOpen: boolean;
}

/** A call that has passed every check that is made before it runs. */
export interface Grant {
  readonly rule: string;
  readonly revision: string;
  readonly used: readonly Used[];
  readonly flags: readonly string[];
  /** Its id in the store until it ends; `undefined` when it was admitted uncounted. */
  readonly call: CallId | undefined;
  costOf(consumption: Consumption): CallCost;
  /** Called when its cost has been booked. */
  booked(spendings: readonly Spending[]): void;
}

export interface CallCost {
  readonly costMicros: number;
  readonly flags: readonly string[];
}

const ALLOWED = "default";
/** The ledger flag of a call that was approved. */
export const CONFIRMED_FLAG = "confirmed";

/** The single entry point of governance for the call pipeline: it decides, and the pipeline enforces the decision. */
export class Governor {
  readonly approvals: Approvals;
  readonly pauses: Pauses;
  readonly failOpen: boolean;
  readonly #options: GovernorOptions;
  readonly #floods = new FloodGuard();
  readonly #dearest = new DearestCalls();
  readonly #budgetAlerts: BudgetAlerts;

  constructor(options: GovernorOptions) {
    this.#options = options;
    this.#budgetAlerts = new BudgetAlerts(options);
    this.approvals = options.approvals;
    this.pauses = options.pauses;
    this.failOpen = options.failOpen;
  }

  get revision(): string {
    return this.#options.source.current.revision;
  }

  policyFor(asker: Asker): AskerPolicy {
    return this.#options.source.current.for(asker);
  }

  onPolicyChange(listener: () => void): () => void {
    return this.#options.source.onChange(listener);
  }

  /** Runs before a message is read. @throws OwlError */
  assertNoFlood(asker: Asker): void {
    const [own] = this.policyFor(asker).counters;
    this.#floods.check(asker.principal.id, floodLimitFor(own?.perMinute?.limit));
  }

  /** The same for a transport that can wait: how long it must stop reading. */
  floodDelayMs(asker: Asker): number {
    const [own] = this.policyFor(asker).counters;
    return this.#floods.delayMs(asker.principal.id, floodLimitFor(own?.perMinute?.limit));
  }

  /**
   * Called before a call when another server may have paused its client without this server knowing.
   * @throws OwlError when the pauses cannot be read.
   */
  async askWhoIsPaused(): Promise<void> {
    try {
      await this.pauses.look();
    } catch (error) {
      if (!this.failOpen) throw error;
      this.#options.logger.error("a call was let through as far as pauses are known, as governance.failOpen says", {
        error,
      });
    }
  }

  /** Refuses what is hidden from the caller or denied to it, before its arguments are checked. @throws OwlError */
  assertOpen(policy: AskerPolicy, subject: Subject): void {
    const { hidden, denied } = policy.termsOf(subject);
    const objection = hidden ?? denied;
    if (objection !== undefined) throw deniedBy(objection, subject, policy.revision);
  }

  /** Checks a call against visibility, rules and maximum cost, without counting it. @throws OwlError */
  assertAllowed(policy: AskerPolicy, subject: Subject, args: unknown): void {
    this.assertOpen(policy, subject);
    judged(policy, policy.termsOf(subject), { subject, args });
  }

  /**
   * Checks rules, cost, limits and approval, in this order. The start of a call that needs no approval is recorded with
   * its admission.
   * @throws OwlError that names the rule or limit that refuses the call.
   */
  async admit(policy: AskerPolicy, call: AskedCall): Promise<Grant> {
    const terms = policy.termsOf(call.subject);
    const verdict = judged(policy, terms, call);
    const confirm = confirmationOf(terms, verdict);
    const reserveMicros = this.#dearest.reserveOf(terms);
    if (confirm !== undefined) {
      const held = await this.#hold(policy, terms, { reserveMicros });
      return this.#confirmed(call, { policy, terms, confirm, held });
    }
    const rule = ruleOf(verdict);
    const draft = call.draft({ rule, revision: policy.revision, flags: NO_FLAGS });
    return this.#grant(
      { policy, terms, rule, restore: undefined },
      await this.#hold(policy, terms, { reserveMicros, draft }),
    );
  }

  async #confirmed(call: AskedCall, { policy, terms, confirm, held }: Confirming): Promise<Grant> {
    const { subject, args, approver } = call;
    activeSpan()?.stage("approval", { "owlclaw.approval.by": confirm.by });
    let yes: Agreed;
    try {
      yes = await this.#agreed({ confirm, subject, args, policy, approver: approver() });
    } catch (error) {
      this.#release(held.lease);
      throw error;
    }
    const draft = call.draft({ rule: yes.rule, revision: yes.policy.revision, flags: [CONFIRMED_FLAG] });
    const known =
      yes.policy === policy
        ? { terms, held: await this.#beginning(held, draft) }
        : await this.#heldAgain({ subject, policy: yes.policy, draft }, held);
    return this.#grant({ terms: known.terms, ...yes }, { ...known.held, flags: [...known.held.flags, CONFIRMED_FLAG] });
  }

  /** Records the start of the call: from now on it gets a ledger row, even if this process is killed. */
  async #beginning(held: Held, draft: Draft): Promise<Held> {
    if (held.lease === undefined) return held;
    try {
      await this.#options.calls.begin(held.lease.call, draft);
    } catch (error) {
      this.#uncounted(error);
    }
    return held;
  }

  /**
   * Prices, limits and budgets that changed while the call waited apply to it: its reservation is released and made
   * again.
   */
  async #heldAgain(
    { subject, policy, draft }: { readonly subject: Subject; readonly policy: AskerPolicy; readonly draft: Draft },
    { lease }: Held,
  ): Promise<{ readonly held: Held; readonly terms: Terms }> {
    if (lease !== undefined) await this.#options.calls.release(lease.call);
    const terms = policy.termsOf(subject);
    return { terms, held: await this.#hold(policy, terms, { reserveMicros: this.#dearest.reserveOf(terms), draft }) };
  }

  /** Waits for the approval, then repeats the earlier checks: pauses and policy may have changed meanwhile. */
  async #agreed(request: ConfirmRequest): Promise<Agreed> {
    const { confirm, subject, policy } = request;
    const restore = await confirmed(this.approvals, request);
    if (this.pauses.isStale) await this.askWhoIsPaused();
    this.pauses.check(policy.asker.principal.id);
    const now = this.policyFor(policy.asker);
    if (now.revision === policy.revision) return { policy, rule: confirm.rule, restore };
    this.assertOpen(now, subject);
    const terms = now.termsOf(subject);
    const wanted = confirmationOf(terms, judged(now, terms, request));
    if (wanted?.by === "operator" && confirm.by === "client")
      return this.#agreed({ ...request, policy: now, confirm: wanted });
    return { policy: now, rule: confirm.rule, restore };
  }

  /**
   * Counts a call that cannot run, so that invalid calls are limited like all others. Returns what is used now.
   * @throws OwlError
   */
  async count(policy: AskerPolicy, subject: Subject): Promise<readonly Used[]> {
    const terms = policy.termsOf(subject);
    if (terms.counters.length === 0) return [];
    const { lease, used } = await this.#hold(policy, terms, { reserveMicros: 0 });
    this.#release(lease);
    return used;
  }

  async usage(asker: Asker): Promise<readonly Used[]> {
    return this.#options.calls.usage(this.policyFor(asker).counters);
  }

  async #hold(policy: AskerPolicy, { counters, reserveMicros: leastMicros }: Terms, asked: Asked): Promise<Held> {
    activeSpan()?.stage("limits");
    const { calls } = this.#options;
    const request = { counters, ...asked };
    try {
      const isGuess = asked.reserveMicros > leastMicros;
      const admission = await (isGuess ? this.#dearest.admit(calls, request, leastMicros) : calls.admit(request));
      return heldBy(admission, policy, asked.reserveMicros);
    } catch (error) {
      return this.#uncounted(error);
    }
  }

  #uncounted(error: unknown): Held {
    if (!this.failOpen || !isOwlError(error) || error.kind !== "store_unavailable") throw error;
    this.#options.logger.error("a call was let through uncounted, as governance.failOpen says", { error });
    return { ...NOTHING_HELD, flags: ["uncounted"] };
  }

  #grant({ policy, terms, rule, restore }: GrantParts, held: Held): Grant {
    const { lease, used, flags } = held;
    return {
      rule,
      revision: policy.revision,
      used,
      flags,
      call: lease?.call,
      costOf: (consumption) => {
        if (consumption.isSuspended) restore?.();
        const known = costOf(terms.price, consumption);
        const reservedMicros = lease?.reserveMicros ?? terms.reserveMicros;
        const isForfeit = consumption.isLost && terms.mayCharge && known < reservedMicros;
        const costMicros = isForfeit ? reservedMicros : known;
        this.#dearest.learn(terms, known);
        // A call under an older policy does not know the budget in force.
        if (policy.revision === this.revision) this.#budgetAlerts.seen(lease, used);
        return { costMicros, flags: isForfeit ? FORFEIT : costFlags(costMicros, terms) };
      },
      booked: (spendings) => {
        if (lease === undefined || spendings.length === 0) return;
        const crossings = crossingsOf(lease.counters, spendings);
        if (crossings.length > 0) this.#budgetAlerts.crossed(crossings, lease.month);
      },
    };
  }

  /** Runs in the background: no caller waits for the release. */
  #release(lease: Lease | undefined): void {
    if (lease === undefined) return;
    this.#options.calls
      .release(lease.call)
      .catch((error: unknown) => this.#options.logger.error("a call could not be settled yet", { error }));
  }
}

/** A call that asks for admission. */
interface AskedCall {
  readonly subject: Subject;
  readonly args: unknown;
  readonly approver: () => Approver;
  /** The row that it gets if this process dies before the call ends. */
  readonly draft: (facts: BeginFacts) => Draft;
}

/** What governance knows about a call when it begins. */
export interface BeginFacts {
  readonly rule: string;
  readonly revision: string;
  readonly flags: readonly string[];
}

interface Asked {
  readonly reserveMicros: number;
  readonly draft?: Draft;
}

interface Confirming {
  readonly policy: AskerPolicy;
  readonly terms: Terms;
  readonly confirm: Confirmation;
  readonly held: Held;
}

interface GrantParts {
  readonly policy: AskerPolicy;
  readonly terms: Terms;
  readonly rule: string;
  readonly restore: (() => void) | undefined;
}

type Agreed = Pick<GrantParts, "policy" | "rule" | "restore">;

interface Held {
  readonly lease: Lease | undefined;
  readonly used: readonly Used[];
  readonly flags: readonly string[];
}

const NO_FLAGS: readonly string[] = [];
/** The call was killed before it could report its cost, so it is charged the reserved cost. */
const FORFEIT: readonly string[] = ["max_cost_charged"];
const NOTHING_HELD: Held = { lease: undefined, used: [], flags: NO_FLAGS };

/** @throws OwlError that names the limit. */
function heldBy(admission: Admission, { revision }: AskerPolicy, reserveMicros: number): Held {
  if (admission.ok) return { lease: admission.lease, used: admission.used, flags: NO_FLAGS };
  throw limitedBy(admission.refusal, revision, reserveMicros);
}

/**
 * Evaluates the rules for the call.
 * @throws OwlError when a rule denies it, or when it may cost more than the maximum.
 */
function judged(
  policy: AskerPolicy,
  { maxCost, reserveMicros }: Terms,
  { subject, args }: { readonly subject: Subject; readonly args: unknown },
): RuleVerdict | undefined {
  const verdict = policy.rules.length === 0 ? undefined : policy.judge(subject, args);
  if (verdict?.effect === "deny")
    throw deniedBy({ rule: ruleOf(verdict), reason: verdict.reason }, subject, policy.revision);
  if (maxCost !== undefined && reserveMicros > maxCost.limit) throw tooDear(maxCost, reserveMicros, policy.revision);
  return verdict;
}

function ruleOf(verdict: RuleVerdict | undefined): string {
  return verdict === undefined ? ALLOWED : `rules.${verdict.rule.id}`;
}

function confirmationOf(terms: Terms, verdict: RuleVerdict | undefined): Confirmation | undefined {
  if (verdict?.effect !== "confirm") return terms.confirm;
  return stricter(terms.confirm, { by: verdict.rule.confirm, rule: ruleOf(verdict), reason: verdict.reason });
}

/**
 * Flags costs above a configured maximum. A reservation without a maximum is an estimate, so a cost above it has no
 * flag.
 */
function costFlags(costMicros: number, { price: { max }, maxCost }: Terms): readonly string[] {
  if (costMicros === 0) return NO_FLAGS;
  const flags: string[] = [];
  if (max !== undefined && costMicros > toMicros(max)) flags.push("over_max_cost");
  if (maxCost !== undefined && costMicros > maxCost.limit) flags.push("over_max_cost_per_call");
  return flags;
}

/** Several budgets may refuse the call, one after another. */
const MAX_TRIES = 4;
/** Names come from definitions and patterns, not from callers, so only a defect can make them this many. */
const MAX_REMEMBERED = 10_000;

/**
 * Calls whose cost cannot be known in advance: the highest cost of such a call so far is reserved. When less than that
 * is left of a budget, one call reserves all of it and runs alone, so that concurrent calls cannot exceed the budget
 * together.
 */
export class DearestCalls {
  readonly #micros = new Map<string, number>();

  /** What to reserve for the next call. */
  reserveOf({ openEndedAs, reserveMicros }: Terms): number {
    if (openEndedAs === undefined) return reserveMicros;
    return Math.max(reserveMicros, this.#micros.get(openEndedAs) ?? 0);
  }

  learn({ openEndedAs }: Terms, costMicros: number): void {
    if (openEndedAs === undefined || costMicros <= (this.#micros.get(openEndedAs) ?? 0)) return;
    if (this.#micros.size >= MAX_REMEMBERED) this.#micros.clear();
    this.#micros.set(openEndedAs, costMicros);
  }

  /** Reserves the requested amount, or all that is left. Refuses when less than the known minimum is left. */
  async admit(
    calls: Pick<Admissions, "admit">,
    { reserveMicros, ...request }: AdmitRequest,
    leastMicros: number,
  ): Promise<Admission> {
    let wantedMicros = reserveMicros;
    for (let tries = 1; ; tries += 1) {
      const admission = await calls.admit({ ...request, reserveMicros: wantedMicros });
      if (admission.ok || admission.refusal.name !== "monthlyBudget") return admission;
      const { limit, used } = admission.refusal;
      if (limit - used < leastMicros || tries >= MAX_TRIES) return admission;
      wantedMicros = limit - used;
    }
  }
}
