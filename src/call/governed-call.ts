import type { UsedSandbox } from "../capability/context.ts";
import { type Call, CallSuspended, EgressMeter, withFields } from "./call.ts";
import type { BeginFacts, CallCost, Grant } from "../governance/governor.ts";
import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import { type Quota, rememberQuota, toQuota } from "../governance/quota.ts";
import {
  type Beginning,
  type CallEnd,
  type LedgerEntry,
  type LedgerKind,
  RAN_ON_FLAG,
  type Ledger,
} from "../governance/ledger/ledger.ts";
import type { Draft } from "../governance/ledger/row.ts";
import type { CallInFlight } from "../telemetry/calls-in-flight.ts";
import { activeSpan, errorTypeOf } from "../telemetry/tracing/active-span.ts";
import type { Span } from "../telemetry/tracing/span.ts";
import type { Governed, GovernanceParts, GovernedWork } from "./governed-work.ts";
import { sandboxFacts, verdictOfRefusal, verdictOf } from "./ledger-facts.ts";
import type { CallStage, RunningCall } from "./running-calls.ts";
import { LONGEST_RUN_ON_MS, RUNS_ON_FLAG, STOP_GRACE_MS, WatchedRun } from "./watched-run.ts";
import type { Approver } from "../governance/approval/confirm.ts";
import { isOwlError } from "../errors/owl-error.ts";

/**
 * Takes work through governance: visibility, arguments, rules, limits, budget, approval, then run, settlement and
 * record. The caller gets no answer before the record is on disk, however the call ends.
 */
export async function runGoverned<I, T>(parts: GovernanceParts, work: GovernedWork<I, T>): Promise<Governed<T>> {
  const record = new CallRecord(parts, work);
  const { governor } = parts;
  const policy = governor.policyFor(work.call.caller);
  const span = activeSpan();
  span?.stage("policy");
  let entered: Entered<I>;
  try {
    entered = await enterCall(parts, { policy, work, draft: (facts) => record.beginning(policy, facts) });
  } catch (thrown) {
    span?.endStage(errorTypeOf(thrown));
    await record.close({ thrown, policy, span });
    throw thrown;
  }
  const { input, grant } = entered;
  span?.stage("run");
  record.runs();
  let value: T;
  let hasBegun = false;
  try {
    // While the call waited for admission or approval, its client may have been paused, or the call stopped.
    record.assertNotStopped();
    governor.pauses.check(work.call.caller.principal.id);
    await record.learnsWhatIsPaid();
    hasBegun = true;
    work.call.onPassed?.();
    if (work.onAdmitted !== undefined) work.onAdmitted(toQuota(grant.used, Date.now()));
    value = await work.perform(input, record.watchedCall());
  } catch (thrown) {
    span?.endStage(errorTypeOf(thrown));
    const spent = (isSuspended: boolean): Spent =>
      record.spent(grant, { isSuspended: isSuspended || !hasBegun, hasBegun });
    await record.closeFailed({ thrown, policy, span, grant }, spent);
    rememberQuota(thrown, grant.used);
    throw thrown;
  }
  await record.close({ value, policy, span, grant, spent: record.spent(grant, RAN) });
  return { value, quota: grant.used.length === 0 ? undefined : toQuota(grant.used, Date.now()) };
}

const RAN = { isSuspended: false, hasBegun: true };

/** What a call that ran has used. */
interface Spent {
  readonly cost: CallCost;
  readonly egressBytes: number;
  readonly sandbox: UsedSandbox | undefined;
}

interface Ending<T> {
  readonly policy: AskerPolicy;
  /** Absent when the call was not admitted. */
  readonly grant?: BeginFacts & Partial<Grant>;
  readonly spent?: Spent;
  readonly value?: T;
  readonly thrown?: unknown;
  readonly span: Span | undefined;
  /** Set when its work has not ended: the row that follows if this process dies. */
  readonly goesOnAs?: LedgerEntry;
}

/** Writes the one row of one call, however it ends. */
class CallRecord<I, T> extends WatchedRun implements RunningCall {
  readonly #parts: GovernanceParts;
  readonly #work: GovernedWork<I, T>;
  readonly time: number = Date.now();
  readonly #startMs = performance.now();
  readonly #inFlight: CallInFlight | undefined;
  readonly #slot: number | undefined;
  readonly #egress = new EgressMeter();
  #charged = 0;
  #beginning: Beginning | undefined;
  #isFixedPaid = false;
  #runsMs: number | undefined;
  #stage: CallStage = "policy";

  constructor(parts: GovernanceParts, work: GovernedWork<I, T>) {
    super();
    this.#parts = parts;
    this.#work = work;
    this.#inFlight = parts.inFlight?.begin();
    this.#slot = parts.running?.add(this);
  }

  get call(): Call {
    return this.#work.call;
  }

  get kind(): LedgerKind {
    return this.#work.kind;
  }

  get name(): string {
    return this.#work.subject.name;
  }

  get stage(): CallStage {
    return this.#stage;
  }

  readonly charge = (amount: number): void => {
    if (Number.isFinite(amount) && amount > 0) this.#charged += amount;
  };

  readonly meter = (used: UsedSandbox): void => this.#egress.add(used);

  /** The call as its work sees it. Copied field by field: calls spend most of their time on copies of objects. */
  watchedCall(): Call {
    const { caller, traceId, requestId, life, conversation, readOptions, onPassed } = this.#work.call;
    const { charge, meter } = this;
    return { caller, traceId, requestId, life, conversation, readOptions, onPassed, charge, meter, watch: this };
  }

  runs(): void {
    this.#stage = "running";
    this.#runsMs = performance.now();
  }

  /** The row that it gets if this process dies before the call ends. */
  beginning(policy: AskerPolicy, facts: BeginFacts): Draft {
    this.#beginning = this.#parts.ledger.beginning(this.#unknownEntry(policy, facts));
    return this.#beginning.draft;
  }

  /** A call that is repeated with answers to its questions pays its fixed price once. */
  async learnsWhatIsPaid(): Promise<void> {
    const { isPaid } = this.#work.call;
    if (isPaid !== undefined) this.#isFixedPaid = await isPaid();
  }

  /** The row of a call that this process does not finish. The store adds the reserved cost. */
  #unknownEntry(policy: AskerPolicy, facts: BeginFacts): LedgerEntry {
    const result = { error: "the server ended before this call did" };
    const entry = this.#entry({ policy, grant: facts, span: undefined }, performance.now());
    return withFields(entry, { outcome: "unknown" as const, result });
  }

  /** What the call has used until now. */
  spent(grant: Grant, { isSuspended, hasBegun }: { readonly isSuspended: boolean; readonly hasBegun: boolean }): Spent {
    const egressBytes = this.#egress.bytes();
    const nowMs = performance.now();
    // Time beyond the limit is not charged: it was not reserved, and the run is already being stopped.
    const durationMs = Math.min(nowMs - (this.#runsMs ?? nowMs), this.#work.subject.timeoutMs);
    const used = {
      durationMs,
      egressBytes,
      charged: this.#charged,
      isSuspended,
      isFixedDue: hasBegun && !this.#isFixedPaid,
      isLost: this.isLost,
    };
    return { cost: grant.costOf(used), egressBytes, sandbox: this.#egress.sandbox };
  }

  /** When the record cannot be written, a refusal is still returned, but a result only with `governance.failOpen`. */
  async close(ending: Ending<T>): Promise<void> {
    const { governor } = this.#parts;
    const startMs = performance.now();
    const entry = this.#entry(ending, startMs);
    this.#stage = "recording";
    ending.span?.stage("ledger");
    try {
      const written = this.#append(entry, ending);
      this.#inFlight?.end();
      await written;
      ending.span?.endStage();
    } catch (error) {
      ending.span?.endStage(errorTypeOf(error));
      this.#end(entry, ending, { startMs, thrown: ending.thrown ?? error });
      if (!governor.failOpen && entry.outcome !== "refused") throw error;
      return;
    }
    this.#end(entry, ending, { startMs, thrown: ending.thrown });
  }

  /** Writes the row, and with it releases what the call holds. */
  async #append(entry: LedgerEntry, { grant, spent, goesOnAs }: Ending<T>): Promise<void> {
    const { ledger } = this.#parts;
    const costMicros = spent?.cost.costMicros ?? 0;
    const end: CallEnd | undefined =
      grant?.call === undefined
        ? undefined
        : { call: grant.call, costMicros, beginning: this.#beginning, ...(goesOnAs !== undefined && { goesOnAs }) };
    const { spendings } = await ledger.append(entry, end);
    grant?.booked?.(spendings);
  }

  async closeFailed(
    ending: Ending<T> & { readonly grant: Grant },
    spent: (isSuspended: boolean) => Spent,
  ): Promise<void> {
    if (this.isRunning && !(await this.endsWithin(this.#parts.running?.stopGraceMs ?? STOP_GRACE_MS)))
      await this.#closeTwice(ending, () => spent(false));
    else await this.close({ ...ending, spent: spent(ending.thrown instanceof CallSuspended) });
  }

  /**
   * For a call that was stopped but still runs. Its client is answered, and the record says so. The call keeps its
   * reservation until its run has ended; its cost is booked then, with a second row.
   */
  async #closeTwice(ending: Ending<T> & { readonly grant: Grant }, spent: () => Spent): Promise<void> {
    void this.endsWithin(LONGEST_RUN_ON_MS).then(() => this.#closeLate(ending, spent()));
    const flags = joined(ending.grant.flags, [RUNS_ON_FLAG]);
    const goesOnAs = lateEntry(this.#unknownEntry(ending.policy, ending.grant));
    await this.close({ ...ending, grant: { ...ending.grant, flags }, goesOnAs });
  }

  async #closeLate(ending: Ending<T>, spent: Spent): Promise<void> {
    const entry = this.#entry({ ...ending, spent }, performance.now());
    const late = lateEntry({ ...entry, result: undefined });
    try {
      await this.#append(late, { ...ending, spent });
    } catch {
      // No caller waits for this row. A ledger that cannot write reports that itself, and writes the row when it can
      // again.
    }
    this.#parts.observer?.ranOn?.(late, this.#work.call);
  }

  #end(
    entry: LedgerEntry,
    { grant, spent }: Ending<T>,
    { startMs, thrown }: { readonly startMs: number; readonly thrown: unknown },
  ): void {
    const { observer, running } = this.#parts;
    running?.delete(this.#slot);
    if (observer === undefined) return;
    const ledgerMs = performance.now() - startMs;
    const runsMs = this.#runsMs ?? startMs;
    const stages = { policyMs: runsMs - this.#startMs, runMs: startMs - runsMs };
    const quota = (): Quota | undefined => (grant?.used === undefined ? undefined : toQuota(grant.used, Date.now()));
    const { call } = this.#work;
    const { egressBytes = 0, sandbox } = spent ?? {};
    observer.finished({ entry, call, thrown, quota, egressBytes, sandbox, ledgerMs, stages });
  }

  #entry({ policy, value, thrown, grant, spent }: Ending<T>, endMs: number): LedgerEntry {
    const { kind, subject, calledAs, args, call } = this.#work;
    const { caller, traceId } = call;
    const verdict = grant === undefined ? verdictOfRefusal(thrown) : verdictOf(thrown, this.#kept(value));
    const { outcome, errorKind, decision, rule, result } = verdict;
    const { sandbox, secrets } = sandboxFacts(args, value);
    return {
      time: this.time,
      principal: caller.principal.id,
      label: caller.label,
      transport: caller.transport,
      kind,
      name: subject.name,
      calledAs,
      args,
      result,
      outcome,
      errorKind,
      decision,
      rule: rule ?? grant?.rule ?? "default",
      policyRevision: grant?.revision ?? verdict.revision ?? policy.revision,
      durationMs: Math.round((endMs - this.#startMs) * 1000) / 1000,
      costMicros: spent?.cost.costMicros ?? 0,
      traceId,
      sandbox,
      secrets,
      flags: joined(policy.groupFlags, joined(grant?.flags, spent?.cost.flags)),
    };
  }

  #kept(value: T | undefined): unknown {
    const { toRecord } = this.#work;
    return toRecord === undefined || value === undefined ? value : toRecord(value);
  }
}

/** The row of work that continued after its call was stopped. */
function lateEntry(entry: LedgerEntry): LedgerEntry {
  return { ...entry, time: Date.now(), args: {}, flags: joined(entry.flags, [RAN_ON_FLAG]), count: 0 };
}

const NO_FLAGS: readonly string[] = [];

function joined(a: readonly string[] = NO_FLAGS, b: readonly string[] = NO_FLAGS): readonly string[] {
  if (b.length === 0) return a;
  return a.length === 0 ? b : [...a, ...b];
}

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

/** Every check before a call runs: visibility, arguments, rules, limits, budget, approval. @throws OwlError */
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
    // Calls with invalid arguments count against the limits too.
    rememberQuota(mistake, await governor.count(policy, work.subject));
    throw mistake;
  }
  const { subject, call, judged, toJudged, assertShown } = work;
  const approver = (): Approver => ({ ...approverOf(call), assertShown });
  const args = judged ?? toJudged?.(input) ?? input;
  return { input, grant: await governor.admit(policy, { subject, args, approver, draft }) };
}

/** Checks before the call runs whether the ledger can be written again: a call that cannot be recorded must not run. */
export async function probeLedger(ledger: Ledger, { revision }: AskerPolicy, { caller, traceId }: Call): Promise<void> {
  await ledger.append({
    time: Date.now(),
    principal: caller.principal.id,
    label: caller.label,
    transport: caller.transport,
    kind: "admin",
    name: "ledger.probe",
    calledAs: "ledger.probe",
    args: {},
    result: undefined,
    outcome: "ok",
    errorKind: undefined,
    decision: "allow",
    rule: "default",
    policyRevision: revision,
    durationMs: 0,
    costMicros: 0,
    traceId,
    sandbox: undefined,
    flags: [],
  });
}

const TICK_MS = 5000;
/** Keeps the values far below those that the capability will report: progress must only rise. */
const SMALL = 1_000_000;

const YES = {
  type: "object",
  properties: { approve: { type: "boolean", title: "Approve", description: "Whether this call may run." } },
  required: ["approve"],
} as const;

/** Gives governance the call's ways to ask and to wait. */
export function approverOf({ conversation, life, traceId, onPassed }: Call): Approver {
  onPassed?.();
  return {
    traceId,
    async askClient({ message, key }) {
      try {
        const answer = await conversation.elicit({ message, requestedSchema: YES }, { key });
        return answer.action === "accept" && answer.content?.["approve"] === true;
      } catch (error) {
        if (isOwlError(error) && error.kind === "missing_capability") return false;
        throw error;
      }
    },
    whileWaiting() {
      if (!conversation.wantsProgress) return () => undefined;
      let seconds = 0;
      const tell = (): void => {
        conversation.progress((seconds + 1) / SMALL, {
          message: `waiting for an operator's approval for ${seconds} s`,
        });
        seconds += TICK_MS / 1000;
      };
      tell();
      const timer = setInterval(tell, TICK_MS);
      timer.unref();
      return () => clearInterval(timer);
    },
    onGone: (leave) => void life.onEnd(leave),
  };
}
