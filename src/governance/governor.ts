import { isOwlError } from "../errors/owl-error.ts";
import type { Alerts } from "../telemetry/alerts.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan } from "../telemetry/tracing/active-span.ts";
import type { Approvals } from "./approval/approvals.ts";
import { type Approver, type ConfirmRequest, confirmed } from "./approval/confirm.ts";
import { BudgetAlerts } from "./budget-alerts.ts";
import { type Consumption, costOf } from "./cost.ts";
import { DearestCalls } from "./dearest-calls.ts";
import { FloodGuard, floodLimitFor } from "./flood-guard.ts";
import type { Admission, Lease, LimitStore, Used } from "./limits/limit-store.ts";
import type { AskerPolicy } from "./policy/asker-policy.ts";
import type { PolicySource } from "./policy/policy-source.ts";
import type { RuleVerdict } from "./policy/rule.ts";
import { type Confirmation, stricter, type Terms, toMicros } from "./policy/terms.ts";
import type { Pauses } from "./pauses.ts";
import { deniedBy, limitedBy, tooDear } from "./refusal.ts";
import { type ReservedCost, reservedBy } from "./reserved-cost.ts";
import type { Asker, Subject } from "./subject.ts";

export interface GovernorOptions {
  readonly source: PolicySource;
  readonly limits: LimitStore;
  readonly approvals: Approvals;
  readonly pauses: Pauses;
  readonly logger: Logger;
  /** Who hears of budgets that are nearly spent. */
  readonly alerts: Pick<Alerts, "send">;
  /** Lets calls through that cannot be counted. */
  readonly failOpen: boolean;
}

/** One call that has passed everything that can be known before it runs. */
export interface Grant {
  readonly rule: string;
  readonly revision: string;
  readonly used: readonly Used[];
  readonly flags: readonly string[];
  /** What it holds of which budgets until it is settled. */
  readonly reserved: ReservedCost;
  /** Books what it cost and gives back what it held. */
  settle(consumption: Consumption): Settlement;
}

export interface Settlement {
  readonly costMicros: number;
  readonly flags: readonly string[];
  /** Rejects when it could not be booked now. Not there where there was nothing to book. */
  readonly booked: Promise<unknown> | undefined;
}

const ALLOWED = "default";
/** In the record of a call that somebody said yes to. */
export const CONFIRMED_FLAG = "confirmed";

/** The one object that the pipeline asks. It decides; whoever asked does what it says. */
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

  /** Stands before anything is read. @throws OwlError */
  assertNoFlood(asker: Asker): void {
    const [own] = this.policyFor(asker).counters;
    this.#floods.check(asker.principal.id, floodLimitFor(own?.perMinute?.limit));
  }

  /** The same for a door that can wait: for how long it reads nothing more. */
  floodDelayMs(asker: Asker): number {
    const [own] = this.policyFor(asker).counters;
    return this.#floods.delayMs(asker.principal.id, floodLimitFor(own?.perMinute?.limit));
  }

  /** Before a call, when others may have paused its client and we would not know. @throws OwlError when nobody can say. */
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

  /** What the asker must not know of or use is refused before its arguments are looked at. @throws OwlError */
  assertOpen(policy: AskerPolicy, subject: Subject): void {
    const { hidden, denied } = policy.termsOf(subject);
    const objection = hidden ?? denied;
    if (objection !== undefined) throw deniedBy(objection, subject, policy.revision);
  }

  /** Whether a call like this would be let through as far as rules say, without counting it. @throws OwlError */
  assertAllowed(policy: AskerPolicy, subject: Subject, args: unknown): void {
    this.assertOpen(policy, subject);
    judged(policy, policy.termsOf(subject), { subject, args });
  }

  /**
   * Rules, cost, limits and approval, in this order: at once where nobody has to be waited for.
   * @throws OwlError that names what stands against the call.
   */
  admit(policy: AskerPolicy, call: AskedCall): Grant | Promise<Grant> {
    const terms = policy.termsOf(call.subject);
    const verdict = judged(policy, terms, call);
    const confirm = confirmationOf(terms, verdict);
    const held = this.#hold(policy, terms, this.#dearest.reserveOf(terms));
    if (confirm !== undefined) return this.#confirmed(call, { policy, terms, confirm, held });
    const parts = { policy, terms, rule: ruleOf(verdict), restore: undefined };
    return held instanceof Promise ? held.then((known) => this.#grant(parts, known)) : this.#grant(parts, held);
  }

  async #confirmed({ subject, args, approver }: AskedCall, asked: Confirming): Promise<Grant> {
    const { policy, terms, confirm } = asked;
    const held = await asked.held;
    activeSpan()?.stage("approval", { "owlclaw.approval.by": confirm.by });
    let yes: Agreed;
    try {
      yes = await this.#agreed({ confirm, subject, args, policy, approver: approver() });
    } catch (error) {
      await this.#book(held.lease, 0);
      throw error;
    }
    const known = yes.policy === policy ? { held, terms } : await this.#heldAgain(subject, yes.policy, held);
    return this.#grant({ terms: known.terms, ...yes }, { ...known.held, flags: [...known.held.flags, CONFIRMED_FLAG] });
  }

  /** Prices, limits and budgets that were set while the call waited bind it: it gives back what it held, and asks anew. */
  async #heldAgain(
    subject: Subject,
    policy: AskerPolicy,
    before: Held,
  ): Promise<{ readonly held: Held; readonly terms: Terms }> {
    await this.#book(before.lease, 0);
    const terms = policy.termsOf(subject);
    return { terms, held: await this.#hold(policy, terms, this.#dearest.reserveOf(terms)) };
  }

  /** Waits for a yes. What was said of the call before is asked again: meanwhile somebody may have said no. */
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

  /** Counts a call that cannot run, so that mistakes are limited like everything else. Says what is used now. @throws OwlError */
  async count(policy: AskerPolicy, subject: Subject): Promise<readonly Used[]> {
    const { lease, used } = await this.#hold(policy, policy.termsOf(subject), 0);
    await this.#book(lease, 0);
    return used;
  }

  async usage(asker: Asker): Promise<readonly Used[]> {
    return this.#options.limits.usage(this.policyFor(asker).counters);
  }

  #hold(policy: AskerPolicy, terms: Terms, reserveMicros: number): Held | Promise<Held> {
    const { counters } = terms;
    if (counters.length === 0) return NOTHING_HELD;
    activeSpan()?.stage("limits");
    const { limits } = this.#options;
    const asked =
      reserveMicros > terms.reserveMicros
        ? this.#dearest.admit(limits, { counters, reserveMicros }, terms.reserveMicros)
        : limits.admit({ counters, reserveMicros });
    if (!(asked instanceof Promise)) return heldBy(asked, policy, reserveMicros);
    return asked.then(
      (admission) => heldBy(admission, policy, reserveMicros),
      (error: unknown) => this.#uncounted(error),
    );
  }

  #uncounted(error: unknown): Held {
    if (!this.failOpen || !isOwlError(error) || error.kind !== "store_unavailable") throw error;
    this.#options.logger.error("a call was let through uncounted, as governance.failOpen says", { error });
    return { ...NOTHING_HELD, flags: ["uncounted"] };
  }

  #grant({ policy, terms, rule, restore }: GrantParts, held: Held): Grant {
    const settle: Grant["settle"] = (consumption) => {
      if (consumption.isSuspended) restore?.();
      const known = costOf(terms.price, consumption);
      const reservedMicros = held.lease?.reserveMicros ?? terms.reserveMicros;
      const isForfeit = consumption.isLost && terms.mayCharge && known < reservedMicros;
      const costMicros = isForfeit ? reservedMicros : known;
      this.#dearest.learn(terms, known);
      // A call under an older policy does not know the budget in force.
      if (policy.revision === this.revision) this.#budgetAlerts.seen(held.lease, held.used);
      const flags = isForfeit ? FORFEIT : costFlags(costMicros, terms);
      return { costMicros, flags, booked: this.#book(held.lease, costMicros) };
    };
    return {
      rule,
      revision: policy.revision,
      used: held.used,
      flags: held.flags,
      reserved: reservedBy(held.lease),
      settle,
    };
  }

  /** Money is booked before the answer leaves; a place that is given back need not be waited for. */
  #book(lease: Lease | undefined, costMicros: number): Promise<unknown> | undefined {
    if (lease === undefined) return undefined;
    const { month, counted } = lease;
    const settled = this.#options.limits.settle(lease, costMicros);
    if (costMicros === 0) {
      settled.catch((error: unknown) => this.#options.logger.error("a call could not be settled yet", { error }));
      return counted;
    }
    return settled.then((crossings) => {
      if (crossings.length > 0) this.#budgetAlerts.crossed(crossings, month);
      return counted;
    });
  }
}

/** A call that somebody wants to make. */
interface AskedCall {
  readonly subject: Subject;
  readonly args: unknown;
  readonly approver: () => Approver;
}

interface Confirming {
  readonly policy: AskerPolicy;
  readonly terms: Terms;
  readonly confirm: Confirmation;
  readonly held: Held | Promise<Held>;
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
/** Stopped by force before it could say what it cost: it costs what was set aside. */
const FORFEIT: readonly string[] = ["max_cost_charged"];
const NOTHING_HELD: Held = { lease: undefined, used: [], flags: NO_FLAGS };

/** @throws OwlError that names the limit. */
function heldBy(admission: Admission, { revision }: AskerPolicy, reserveMicros: number): Held {
  if (admission.ok) return { lease: admission.lease, used: admission.used, flags: NO_FLAGS };
  throw limitedBy(admission.refusal, revision, reserveMicros);
}

/** What the rules say of the call. @throws OwlError when that, or what it may cost, is a no. */
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

/** What is set aside for want of a maximum is a guess of ours: to cost more is nobody's fault. */
function costFlags(costMicros: number, { price: { max }, maxCost }: Terms): readonly string[] {
  if (costMicros === 0) return NO_FLAGS;
  const flags: string[] = [];
  if (max !== undefined && costMicros > toMicros(max)) flags.push("over_max_cost");
  if (maxCost !== undefined && costMicros > maxCost.limit) flags.push("over_max_cost_per_call");
  return flags;
}
