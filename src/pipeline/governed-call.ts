import { isOwlError, type OwlError } from "../errors/owl-error.ts";
import type { Consumption } from "../governance/cost.ts";
import type { Governor, Grant, Settlement } from "../governance/governor.ts";
import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import { type Quota, toQuota } from "../governance/quota.ts";
import type { Subject } from "../governance/subject.ts";
import type { Ledger, LedgerEntry, LedgerKind } from "../ledger/ledger.ts";
import { activeSpan, errorTypeOf } from "../telemetry/tracing/active-span.ts";
import type { Span } from "../telemetry/tracing/span.ts";
import type { CallInFlight, CallsInFlight } from "../telemetry/calls-in-flight.ts";
import { approverOf } from "./approver.ts";
import { type Call, CallSuspended } from "./call.ts";
import type { CallObserver } from "./call-observer.ts";
import { EgressMeter } from "./egress-meter.ts";
import { REFUSALS, sandboxFacts, verdictOf } from "./ledger-facts.ts";
import type { CallStage, RunningCall, RunningCalls } from "./running-calls.ts";

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
  readonly perform: (input: I, call: Call) => Promise<T>;
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
  const meter = (bytesMoved: () => number): void => egress.add(bytesMoved);
  const startMs = performance.now();
  const consumed = (isSuspended: boolean): Consumption => ({
    durationMs: performance.now() - startMs,
    egressBytes: egress.bytes(),
    charged,
    isSuspended,
  });
  span?.stage("run");
  record.runs();
  let value: T;
  try {
    value = await work.perform(input, { ...work.call, charge, meter, onStop: record.onStop });
  } catch (thrown) {
    span?.endStage(errorTypeOf(thrown));
    const used = consumed(thrown instanceof CallSuspended);
    await record.close({ thrown, policy, grant, span, egressBytes: used.egressBytes, settled: grant.settle(used) });
    throw thrown;
  }
  const used = consumed(false);
  await record.close({ value, policy, grant, span, egressBytes: used.egressBytes, settled: grant.settle(used) });
  return { value, quota: grant.used.length === 0 ? undefined : toQuota(grant.used, Date.now()) };
}

async function enter<I, T>(
  { governor, ledger }: GovernanceParts,
  policy: AskerPolicy,
  { subject, call, check }: GovernedWork<I, T>,
): Promise<{ readonly input: I; readonly grant: Grant }> {
  governor.pauses.check(call.caller.principal.id);
  if (!ledger.isHealthy && !governor.failOpen) await probe(ledger, policy, call);
  governor.assertOpen(policy, subject);
  let input: I;
  try {
    const checked = check();
    input = checked instanceof Promise ? await checked : checked;
  } catch (mistake) {
    await governor.count(policy, subject);
    throw mistake;
  }
  return { input, grant: await governor.admit(policy, { subject, args: input, approver: () => approverOf(call) }) };
}

/** Nothing runs that could not be recorded: whether that works again is tried before, not after. */
async function probe(ledger: Ledger, { revision }: AskerPolicy, { caller, traceId }: Call): Promise<void> {
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

interface Ending<T> {
  readonly policy: AskerPolicy;
  readonly value?: T;
  readonly thrown?: unknown;
  readonly grant?: Grant;
  readonly settled?: Settlement;
  readonly egressBytes?: number;
  readonly span: Span | undefined;
}

/** Writes the one row of one call, whichever way it ends. */
class CallRecord<I, T> implements RunningCall {
  readonly #parts: GovernanceParts;
  readonly #work: GovernedWork<I, T>;
  readonly time: number = Date.now();
  readonly #startMs = performance.now();
  readonly #inFlight: CallInFlight | undefined;
  readonly #slot: number | undefined;
  #runsMs: number | undefined;
  #stage: CallStage = "policy";
  #stop: ((error: OwlError) => void) | undefined;

  constructor(parts: GovernanceParts, work: GovernedWork<I, T>) {
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

  stop(error: OwlError): void {
    this.#stop?.(error);
  }

  runs(): void {
    this.#stage = "running";
    this.#runsMs = performance.now();
  }

  readonly onStop = (stop: (error: OwlError) => void): void => {
    this.#stop = stop;
  };

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
      this.#tell(entry, ending, { startMs, thrown: ending.thrown });
    } catch (error) {
      ending.span?.endStage(errorTypeOf(error));
      this.#tell(entry, ending, { startMs, thrown: ending.thrown ?? error });
      if (!governor.failOpen && !isRefusal(ending.thrown)) throw error;
    } finally {
      this.#parts.running?.delete(this.#slot);
    }
  }

  #tell(
    entry: LedgerEntry,
    { grant, egressBytes = 0 }: Ending<T>,
    { startMs, thrown }: { readonly startMs: number; readonly thrown: unknown },
  ): void {
    const { observer } = this.#parts;
    if (observer === undefined) return;
    const ledgerMs = performance.now() - startMs;
    const runsMs = this.#runsMs ?? startMs;
    const stages = { policyMs: runsMs - this.#startMs, runMs: startMs - runsMs };
    const quota = (): Quota | undefined => (grant === undefined ? undefined : toQuota(grant.used, Date.now()));
    observer.finished({ entry, call: this.#work.call, thrown, quota, egressBytes, ledgerMs, stages });
  }

  #entry({ policy, value, thrown, grant, settled }: Ending<T>): LedgerEntry {
    const { kind, subject, calledAs, args, call, toRecord } = this.#work;
    const { caller, traceId } = call;
    const kept = toRecord === undefined || value === undefined ? value : toRecord(value);
    const { outcome, errorKind, decision, rule, result } = verdictOf(thrown, kept);
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
      policyRevision: grant?.revision ?? policy.revision,
      durationMs: Math.round((performance.now() - this.#startMs) * 1000) / 1000,
      costMicros: settled?.costMicros ?? 0,
      traceId,
      ...sandboxFacts(args, value),
      flags: joined(policy.groupFlags, joined(grant?.flags, settled?.flags)),
    };
  }
}

const NO_FLAGS: readonly string[] = [];

function joined(a: readonly string[] = NO_FLAGS, b: readonly string[] = NO_FLAGS): readonly string[] {
  if (b.length === 0) return a;
  return a.length === 0 ? b : [...a, ...b];
}

function isRefusal(thrown: unknown): boolean {
  return isOwlError(thrown) && REFUSALS.has(thrown.kind);
}
