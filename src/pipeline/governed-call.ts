import type { UsedSandbox } from "../capabilities/context.ts";
import type { Approver } from "../governance/approval/confirm.ts";
import type { Governor, Grant, Settlement } from "../governance/governor.ts";
import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import { type Quota, rememberQuota, toQuota } from "../governance/quota.ts";
import type { Subject } from "../governance/subject.ts";
import type { Ledger, LedgerEntry, LedgerKind } from "../ledger/ledger.ts";
import { activeSpan, errorTypeOf } from "../telemetry/tracing/active-span.ts";
import type { Span } from "../telemetry/tracing/span.ts";
import type { CallInFlight, CallsInFlight } from "../telemetry/calls-in-flight.ts";
import { approverOf } from "./approver.ts";
import { type Call, CallSuspended } from "./call.ts";
import type { CallObserver } from "./call-observer.ts";
import { EgressMeter } from "./egress-meter.ts";
import { sandboxFacts, verdictAtDoor, verdictOf } from "./ledger-facts.ts";
import { probeLedger } from "./probe-ledger.ts";
import type { CallStage, RunningCall, RunningCalls } from "./running-calls.ts";
import { LONGEST_RUN_ON_MS, RAN_ON_FLAG, RUNS_ON_FLAG, STOP_GRACE_MS, WatchedRun } from "./watched-run.ts";

export interface GovernanceParts {
  readonly governor: Governor;
  readonly ledger: Ledger;
  /** For whoever writes something down for each of them. */
  readonly inFlight?: CallsInFlight;
  readonly observer?: CallObserver | undefined;
  /** For whoever wants to see or end what is under way. */
  readonly running?: RunningCalls;
}

/** One thing that somebody wants to have done. */
export interface GovernedWork<I, T> {
  readonly kind: LedgerKind;
  readonly subject: Subject;
  readonly calledAs: string;
  readonly args: unknown;
  readonly call: Call;
  /** Reads the arguments. What it throws is the caller's mistake, and counts as a call. */
  readonly check: () => I | Promise<I>;
  /** What rules see, where that is not what `check` gives. */
  readonly judged?: unknown;
  readonly perform: (input: I, call: Call) => Promise<T>;
  /** Hears what is left to the caller before the work begins, for doors that answer while it runs. */
  readonly onAdmitted?: (quota: Quota) => void;
  /** For doors whose arguments may not show what is done. @throws OwlError before an operator is asked. */
  readonly assertShown?: ((rule: string) => void) | undefined;
  /** What the ledger keeps of the value. Default: all of it, bounded. */
  readonly toRecord?: ((value: T) => unknown) | undefined;
}

export interface Governed<T> {
  readonly value: T;
  readonly quota: Quota | undefined;
}

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
  let started: { readonly input: I; readonly grant: Grant };
  try {
    started = await enter(parts, policy, work);
  } catch (thrown) {
    span?.endStage(errorTypeOf(thrown));
    await record.close({ thrown, policy, span });
    throw thrown;
  }
  const { input, grant } = started;
  let charged = 0;
  const charge = (amount: number): void => {
    if (Number.isFinite(amount) && amount > 0) charged += amount;
  };
  const egress = new EgressMeter();
  const meter = (used: UsedSandbox): void => egress.add(used);
  const startMs = performance.now();
  const spent = (isSuspended: boolean): Spent => {
    const egressBytes = egress.bytes();
    // No more time is paid for than was set aside: what runs beyond its limit is on its way to its end.
    const durationMs = Math.min(performance.now() - startMs, work.subject.timeoutMs);
    const used = { durationMs, egressBytes, charged, isSuspended, isLost: record.isLost };
    return { grant, settled: grant.settle(used), egressBytes, sandbox: egress.sandbox };
  };
  span?.stage("run");
  record.runs();
  let value: T;
  let hasBegun = false;
  try {
    // While it waited for its turn or a yes, its client may have been paused or the call itself ended.
    record.assertNotStopped();
    governor.pauses.check(work.call.caller.principal.id);
    hasBegun = true;
    work.call.onPassed?.();
    if (work.onAdmitted !== undefined) work.onAdmitted(toQuota(grant.used, Date.now()));
    value = await work.perform(input, { ...work.call, charge, meter, watch: record });
  } catch (thrown) {
    span?.endStage(errorTypeOf(thrown));
    await record.closeFailed({ thrown, policy, span, grant }, (isSuspended) => spent(isSuspended || !hasBegun));
    rememberQuota(thrown, grant.used);
    throw thrown;
  }
  await record.close({ value, policy, span, ...spent(false) });
  return { value, quota: grant.used.length === 0 ? undefined : toQuota(grant.used, Date.now()) };
}

async function enter<I, T>(
  { governor, ledger }: GovernanceParts,
  policy: AskerPolicy,
  { subject, call, check, judged, assertShown }: GovernedWork<I, T>,
): Promise<{ readonly input: I; readonly grant: Grant }> {
  if (governor.pauses.isStale) await governor.askWhoIsPaused();
  governor.pauses.check(call.caller.principal.id);
  if (!ledger.isHealthy && !governor.failOpen) await probeLedger(ledger, policy, call);
  governor.assertOpen(policy, subject);
  let input: I;
  try {
    const checked = check();
    input = checked instanceof Promise ? await checked : checked;
  } catch (mistake) {
    rememberQuota(mistake, await governor.count(policy, subject));
    throw mistake;
  }
  const approver = (): Approver => ({ ...approverOf(call), assertShown });
  return { input, grant: await governor.admit(policy, { subject, args: judged ?? input, approver }) };
}

/** What a call that ran has used. */
interface Spent {
  readonly grant: Grant;
  readonly settled: Settlement;
  readonly egressBytes: number;
  readonly sandbox: UsedSandbox | undefined;
}

interface Ending<T> extends Partial<Spent> {
  readonly policy: AskerPolicy;
  readonly value?: T;
  readonly thrown?: unknown;
  readonly span: Span | undefined;
}

/** Writes the one row of one call, whichever way it ends. */
class CallRecord<I, T> extends WatchedRun implements RunningCall {
  readonly #parts: GovernanceParts;
  readonly #work: GovernedWork<I, T>;
  readonly time: number = Date.now();
  readonly #startMs = performance.now();
  readonly #inFlight: CallInFlight | undefined;
  readonly #slot: number | undefined;
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

  runs(): void {
    this.#stage = "running";
    this.#runsMs = performance.now();
  }

  /** A refusal stays what it is; what nobody could record must not leave, unless the operator wants it so. */
  async close(ending: Ending<T>): Promise<void> {
    const { ledger, governor } = this.#parts;
    const { booked } = ending.settled ?? {};
    const entry = this.#entry(ending);
    const startMs = performance.now();
    this.#stage = "recording";
    ending.span?.stage("ledger");
    // Both are waited for, one after the other: whoever fails first must not go unheard.
    booked?.catch(() => undefined);
    try {
      const written = ledger.append(entry);
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

  async closeFailed(
    ending: Ending<T> & { readonly grant: Grant },
    spent: (isSuspended: boolean) => Spent,
  ): Promise<void> {
    if (this.isRunning && !(await this.endsWithin(STOP_GRACE_MS))) await this.#closeTwice(ending, () => spent(false));
    else await this.close({ ...ending, ...spent(ending.thrown instanceof CallSuspended) });
  }

  /**
   * For what was stopped and runs on. Its client is answered, and the record says so; place and reservation are kept until
   * it has ended, and what it cost is booked then and has a record of its own.
   */
  async #closeTwice(ending: Ending<T> & { readonly grant: Grant }, spent: () => Spent): Promise<void> {
    void this.endsWithin(LONGEST_RUN_ON_MS).then(() => this.#closeLate(ending, spent()));
    const flags = joined(ending.grant.flags, [RUNS_ON_FLAG]);
    await this.close({ ...ending, grant: { ...ending.grant, flags } });
  }

  async #closeLate(ending: Ending<T>, spent: Spent): Promise<void> {
    const entry = this.#entry({ ...ending, ...spent });
    const { ledger, observer } = this.#parts;
    const flags = joined(entry.flags, [RAN_ON_FLAG]);
    const late = { ...entry, time: Date.now(), args: {}, result: undefined, flags, count: 0 };
    // Nobody waits for it. A ledger that cannot write says so by itself, and what could not be booked is tried again.
    await Promise.allSettled([ledger.append(late), spent.settled.booked]);
    observer?.ranOn?.(late, this.#work.call);
  }

  #end(
    entry: LedgerEntry,
    { grant, egressBytes = 0, sandbox }: Ending<T>,
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
    observer.finished({ entry, call, thrown, quota, egressBytes, sandbox, ledgerMs, stages });
  }

  #entry({ policy, value, thrown, grant, settled }: Ending<T>): LedgerEntry {
    const { kind, subject, calledAs, args, call } = this.#work;
    const { caller, traceId } = call;
    const verdict = grant === undefined ? verdictAtDoor(thrown) : verdictOf(thrown, this.#kept(value));
    const { outcome, errorKind, decision, rule, result } = verdict;
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
      durationMs: Math.round((performance.now() - this.#startMs) * 1000) / 1000,
      costMicros: settled?.costMicros ?? 0,
      traceId,
      ...sandboxFacts(args, value),
      flags: joined(policy.groupFlags, joined(grant?.flags, settled?.flags)),
    };
  }

  #kept(value: T | undefined): unknown {
    const { toRecord } = this.#work;
    return toRecord === undefined || value === undefined ? value : toRecord(value);
  }
}

const NO_FLAGS: readonly string[] = [];

function joined(a: readonly string[] = NO_FLAGS, b: readonly string[] = NO_FLAGS): readonly string[] {
  if (b.length === 0) return a;
  return a.length === 0 ? b : [...a, ...b];
}
