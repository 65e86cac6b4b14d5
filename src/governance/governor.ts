import { isOwlError } from "../errors/owl-error.ts";
import type { Alerts } from "../telemetry/alerts.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan } from "../telemetry/tracing/active-span.ts";
import type { Approvals } from "./approval/approvals.ts";
import { type Approver, confirmed } from "./approval/confirm.ts";
import { type Consumption, costOf } from "./cost.ts";
import { FloodGuard, floodLimitFor } from "./flood-guard.ts";
import type { Crossing, Lease, LimitStore, Used } from "./limits/limit-store.ts";
import type { AskerPolicy } from "./policy/asker-policy.ts";
import type { PolicySource } from "./policy/policy-source.ts";
import { type Confirmation, type Cap, fromMicros, stricter, type Terms } from "./policy/terms.ts";
import type { Pauses } from "./pauses.ts";
import { deniedBy, limitedBy, tooDear } from "./refusal.ts";
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
  /** Books what it cost and gives back what it held. */
  settle(consumption: Consumption): Settlement;
}

export interface Settlement {
  readonly costMicros: number;
  readonly flags: readonly string[];
  /** Rejects when it could not be booked now. */
  readonly booked: Promise<void>;
}

const ALLOWED = "default";

/** The one object that the pipeline asks. It decides; whoever asked does what it says. */
export class Governor {
  readonly approvals: Approvals;
  readonly pauses: Pauses;
  readonly failOpen: boolean;
  readonly #options: GovernorOptions;
  readonly #floods = new FloodGuard();

  constructor(options: GovernorOptions) {
    this.#options = options;
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

  /** What the asker must not know of or use is refused before its arguments are looked at. @throws OwlError */
  assertOpen(policy: AskerPolicy, subject: Subject): void {
    const { hidden, denied } = policy.termsOf(subject);
    const objection = hidden ?? denied;
    if (objection !== undefined) throw deniedBy(objection, subject, policy.revision);
  }

  /** Rules, cost, limits and approval, in this order. @throws OwlError that names what stands against the call. */
  async admit(
    policy: AskerPolicy,
    call: { readonly subject: Subject; readonly args: unknown; readonly approver: () => Approver },
  ): Promise<Grant> {
    const { subject, args, approver } = call;
    const terms = policy.termsOf(subject);
    const verdict = policy.rules.length === 0 ? undefined : policy.judge(subject, args);
    const rule = verdict === undefined ? ALLOWED : `rules.${verdict.rule.id}`;
    if (verdict?.effect === "deny") throw deniedBy({ rule, reason: verdict.reason }, subject, policy.revision);
    const { maxCost, reserveMicros } = terms;
    if (maxCost !== undefined && reserveMicros > maxCost.limit) throw tooDear(maxCost, reserveMicros, policy.revision);
    const asked: Confirmation | undefined =
      verdict?.effect === "confirm" ? { by: verdict.rule.confirm, rule, reason: verdict.reason } : undefined;
    const confirm = stricter(terms.confirm, asked);
    const held = await this.#hold(policy, terms, terms.reserveMicros);
    if (confirm === undefined) return this.#grant({ policy, terms, held, rule, restore: undefined });
    activeSpan()?.stage("approval", { "owlclaw.approval.by": confirm.by });
    try {
      const restore = await confirmed(this.approvals, { confirm, subject, args, policy, approver: approver() });
      return this.#grant({ policy, terms, held, rule: confirm.rule, restore });
    } catch (error) {
      await this.#book(held.lease, 0);
      throw error;
    }
  }

  /** Counts a call that cannot run, so that mistakes are limited like everything else. @throws OwlError */
  async count(policy: AskerPolicy, subject: Subject): Promise<void> {
    const { lease } = await this.#hold(policy, policy.termsOf(subject), 0);
    await this.#book(lease, 0);
  }

  async usage(asker: Asker): Promise<readonly Used[]> {
    return this.#options.limits.usage(this.policyFor(asker).counters);
  }

  async #hold(policy: AskerPolicy, { counters }: Terms, reserveMicros: number): Promise<Held> {
    if (counters.length === 0) return NOTHING_HELD;
    activeSpan()?.stage("limits");
    try {
      const admission = await this.#options.limits.admit({ counters, reserveMicros });
      if (admission.ok) return { lease: admission.lease, used: admission.used, flags: NO_FLAGS };
      throw limitedBy(admission.refusal, policy.revision, reserveMicros);
    } catch (error) {
      if (!this.failOpen || !isOwlError(error) || error.kind !== "store_unavailable") throw error;
      this.#options.logger.error("a call was let through uncounted, as governance.failOpen says", { error });
      return { ...NOTHING_HELD, flags: ["uncounted"] };
    }
  }

  #grant(parts: {
    readonly policy: AskerPolicy;
    readonly terms: Terms;
    readonly held: Held;
    readonly rule: string;
    readonly restore: (() => void) | undefined;
  }): Grant {
    const { policy, terms, held, rule, restore } = parts;
    const settle: Grant["settle"] = (consumption) => {
      if (consumption.isSuspended) restore?.();
      const costMicros = costOf(terms.price, consumption);
      const flags = costFlags(costMicros, terms.reserveMicros, terms.maxCost);
      return { costMicros, flags, booked: this.#book(held.lease, costMicros) };
    };
    return { rule, revision: policy.revision, used: held.used, flags: held.flags, settle };
  }

  /** Money is booked before the answer leaves; a place that is given back need not be waited for. */
  async #book(lease: Lease | undefined, costMicros: number): Promise<void> {
    if (lease === undefined) return;
    const settled = this.#options.limits.settle(lease, costMicros);
    if (costMicros > 0) this.#alert(await settled);
    else settled.catch((error: unknown) => this.#options.logger.error("a call could not be settled yet", { error }));
    if (lease.counted !== undefined) await lease.counted;
  }

  /** What a month has cost only grows, and one booking alone passes each share of it: it is told once, by whoever booked. */
  #alert(crossings: readonly Crossing[]): void {
    const { logger, alerts } = this.#options;
    for (const { key, rule, percent, spentMicros, limitMicros } of crossings) {
      const facts = { of: key, rule, percent, spent: fromMicros(spentMicros), limit: fromMicros(limitMicros) };
      logger.warning("budget threshold passed", facts);
      const severity = percent >= 100 ? "error" : "warning";
      const message = `${percent} % of a monthly budget is spent (${rule})`;
      alerts.send({ event: "budget_threshold", severity, message, facts });
    }
  }
}

interface Held {
  readonly lease: Lease | undefined;
  readonly used: readonly Used[];
  readonly flags: readonly string[];
}

const NO_FLAGS: readonly string[] = [];
const NOTHING_HELD: Held = { lease: undefined, used: [], flags: NO_FLAGS };

function costFlags(costMicros: number, reserveMicros: number, maxCost: Cap | undefined): readonly string[] {
  if (costMicros === 0) return NO_FLAGS;
  const flags: string[] = [];
  if (costMicros > reserveMicros) flags.push("over_max_cost");
  if (maxCost !== undefined && costMicros > maxCost.limit) flags.push("over_max_cost_per_call");
  return flags;
}
