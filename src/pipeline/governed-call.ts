import type { UsedSandbox } from "../capabilities/context.ts";
import { withFields } from "../collections/with-fields.ts";
import type { Grant, Settlement } from "../governance/governor.ts";
import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import { type Quota, rememberQuota, toQuota } from "../governance/quota.ts";
import { NOTHING_RESERVED } from "../governance/reserved-cost.ts";
import type { LedgerEntry, LedgerKind } from "../ledger/ledger.ts";
import type { StartedCall } from "../ledger/started-calls.ts";
import type { CallInFlight } from "../telemetry/calls-in-flight.ts";
import { activeSpan, errorTypeOf } from "../telemetry/tracing/active-span.ts";
import type { Span } from "../telemetry/tracing/span.ts";
import { type Call, CallSuspended } from "./call.ts";
import { EgressMeter } from "./egress-meter.ts";
import { type Entered, enterCall } from "./enter-call.ts";
import type { Governed, GovernanceParts, GovernedWork } from "./governed-work.ts";
import { sandboxFacts, verdictAtDoor, verdictOf } from "./ledger-facts.ts";
import type { CallStage, RunningCall } from "./running-calls.ts";
import { LONGEST_RUN_ON_MS, RAN_ON_FLAG, RUNS_ON_FLAG, STOP_GRACE_MS, WatchedRun } from "./watched-run.ts";

/**
 * Takes work through governance: open to the caller, arguments read, rules, limits, budget, approval, then run, settle
 * and record. Nothing is answered before its record is on disk, however the call ends.
 */
export async function runGoverned<I, T>(parts: GovernanceParts, work: GovernedWork<I, T>): Promise<Governed<T>> {
  const record = new CallRecord(parts, work);
  const { governor } = parts;
  const policy = governor.policyFor(work.call.caller);
  const span = activeSpan();
  span?.stage("policy");
  let entered: Entered<I>;
  try {
    const entering = enterCall(parts, policy, work);
    entered = entering instanceof Promise ? await entering : entering;
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
    // While it waited for its turn or a yes, its client may have been paused or the call itself ended.
    record.assertNotStopped();
    governor.pauses.check(work.call.caller.principal.id);
    record.begins(policy, grant);
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
  readonly settled: Settlement;
  readonly egressBytes: number;
  readonly sandbox: UsedSandbox | undefined;
}

interface Ending<T> {
  readonly policy: AskerPolicy;
  /** Not there where the call was not let in. */
  readonly grant?: Grant;
  readonly spent?: Spent;
  readonly value?: T;
  readonly thrown?: unknown;
  readonly span: Span | undefined;
  /** A second row follows when its work has ended. */
  readonly runsOn?: boolean;
}

/** Writes the one row of one call, whichever way it ends. */
class CallRecord<I, T> extends WatchedRun implements RunningCall {
  readonly #parts: GovernanceParts;
  readonly #work: GovernedWork<I, T>;
  readonly time: number = Date.now();
  readonly #startMs = performance.now();
  readonly #inFlight: CallInFlight | undefined;
  readonly #slot: number | undefined;
  readonly #egress = new EgressMeter();
  #charged = 0;
  #started: StartedCall | undefined;
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

  /** The call as its work sees it. Field by field: copies of objects are what calls spend most of their time on. */
  watchedCall(): Call {
    const { caller, traceId, requestId, life, conversation, wish, onPassed } = this.#work.call;
    const { charge, meter } = this;
    return { caller, traceId, requestId, life, conversation, wish, onPassed, charge, meter, watch: this };
  }

  runs(): void {
    this.#stage = "running";
    this.#runsMs = performance.now();
  }

  /** From here on it has a row, even if this process is killed. @throws OwlError when that cannot be recorded. */
  begins(policy: AskerPolicy, grant: Grant): void {
    const { ledger, governor } = this.#parts;
    try {
      this.#started = ledger.begin(this.#unknownEntry({ policy, grant, span: undefined }), grant.reserved);
    } catch (error) {
      if (!governor.failOpen) throw error;
    }
  }

  /** A call that comes back with answers to its questions pays its fixed price once. */
  async learnsWhatIsPaid(): Promise<void> {
    const { isPaid } = this.#work.call;
    if (isPaid !== undefined) this.#isFixedPaid = await isPaid();
  }

  /** The row of a call that this process does not bring to its end. */
  #unknownEntry(ending: Ending<T> & { readonly grant: Grant }): LedgerEntry {
    const result = { error: "the server ended before this call did" };
    const costMicros = ending.grant.reserved.micros;
    return withFields(this.#entry(ending, performance.now()), { outcome: "unknown" as const, result, costMicros });
  }

  /** Settles what the call has used until now. */
  spent(grant: Grant, { isSuspended, hasBegun }: { readonly isSuspended: boolean; readonly hasBegun: boolean }): Spent {
    const egressBytes = this.#egress.bytes();
    const nowMs = performance.now();
    // No more time is paid for than was set aside: what runs beyond its limit is on its way to its end.
    const durationMs = Math.min(nowMs - (this.#runsMs ?? nowMs), this.#work.subject.timeoutMs);
    const used = {
      durationMs,
      egressBytes,
      charged: this.#charged,
      isSuspended,
      isFixedDue: hasBegun && !this.#isFixedPaid,
      isLost: this.isLost,
    };
    const settled = grant.settle(used);
    // In the same turn of the event loop, which comes before the store writes: a killed server books nothing twice.
    if (this.#started !== undefined) this.#parts.ledger.settles(this.#started, settled.costMicros);
    return { settled, egressBytes, sandbox: this.#egress.sandbox };
  }

  /** A refusal stays what it is; what nobody could record must not leave, unless the operator wants it so. */
  async close(ending: Ending<T>): Promise<void> {
    const { governor } = this.#parts;
    const booked = ending.spent?.settled.booked;
    const startMs = performance.now();
    const entry = this.#entry(ending, startMs);
    this.#stage = "recording";
    ending.span?.stage("ledger");
    // Both are waited for, one after the other: whoever fails first must not go unheard.
    booked?.catch(() => undefined);
    try {
      const written = this.#append(entry, ending);
      this.#inFlight?.end();
      await written;
      await booked;
      ending.span?.endStage();
    } catch (error) {
      ending.span?.endStage(errorTypeOf(error));
      this.#end(entry, ending, { startMs, thrown: ending.thrown ?? error });
      if (!governor.failOpen && entry.outcome !== "refused") throw error;
      return;
    }
    this.#end(entry, ending, { startMs, thrown: ending.thrown });
  }

  #append(entry: LedgerEntry, { runsOn = false }: Ending<T>): Promise<unknown> {
    const { ledger, governor } = this.#parts;
    const started = runsOn ? undefined : this.#started;
    const written = ledger.append(entry, started);
    if (started === undefined) return written;
    return written.catch((error: unknown) => {
      // What it cost is booked. With failOpen the operator does without the row; else the next start writes it.
      if (governor.failOpen) ledger.forget(started);
      else ledger.continues(started, entry, NOTHING_RESERVED);
      throw error;
    });
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
   * For what was stopped and runs on. Its client is answered, and the record says so; place and reservation are kept until
   * it has ended, and what it cost is booked then and has a record of its own.
   */
  async #closeTwice(ending: Ending<T> & { readonly grant: Grant }, spent: () => Spent): Promise<void> {
    void this.endsWithin(LONGEST_RUN_ON_MS).then(() => this.#closeLate(ending, spent()));
    const flags = joined(ending.grant.flags, [RUNS_ON_FLAG]);
    await this.close({ ...ending, grant: { ...ending.grant, flags }, runsOn: true });
    if (this.#started === undefined) return;
    this.#parts.ledger.continues(this.#started, lateEntry(this.#unknownEntry(ending)), ending.grant.reserved);
  }

  async #closeLate(ending: Ending<T>, spent: Spent): Promise<void> {
    const entry = this.#entry({ ...ending, spent }, performance.now());
    const { ledger, observer } = this.#parts;
    const late = lateEntry({ ...entry, result: undefined });
    // Nobody waits for it. A ledger that cannot write says so by itself, and what could not be booked is tried again.
    await Promise.allSettled([ledger.append(late, this.#started), spent.settled.booked]);
    observer?.ranOn?.(late, this.#work.call);
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
    const quota = (): Quota | undefined => (grant === undefined ? undefined : toQuota(grant.used, Date.now()));
    const { call } = this.#work;
    const { egressBytes = 0, sandbox } = spent ?? {};
    observer.finished({ entry, call, thrown, quota, egressBytes, sandbox, ledgerMs, stages });
  }

  #entry({ policy, value, thrown, grant, spent }: Ending<T>, endMs: number): LedgerEntry {
    const { kind, subject, calledAs, args, call } = this.#work;
    const { caller, traceId } = call;
    const verdict = grant === undefined ? verdictAtDoor(thrown) : verdictOf(thrown, this.#kept(value));
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
      costMicros: spent?.settled.costMicros ?? 0,
      traceId,
      sandbox,
      secrets,
      flags: joined(policy.groupFlags, joined(grant?.flags, spent?.settled.flags)),
    };
  }

  #kept(value: T | undefined): unknown {
    const { toRecord } = this.#work;
    return toRecord === undefined || value === undefined ? value : toRecord(value);
  }
}

/** The row of work that went on after its call was stopped. */
function lateEntry(entry: LedgerEntry): LedgerEntry {
  return { ...entry, time: Date.now(), args: {}, flags: joined(entry.flags, [RAN_ON_FLAG]), count: 0 };
}

const NO_FLAGS: readonly string[] = [];

function joined(a: readonly string[] = NO_FLAGS, b: readonly string[] = NO_FLAGS): readonly string[] {
  if (b.length === 0) return a;
  return a.length === 0 ? b : [...a, ...b];
}
