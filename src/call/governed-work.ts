import type { Governor } from "../governance/governor.ts";
import type { Quota } from "../governance/quota.ts";
import type { Subject } from "../governance/subject.ts";
import type { Ledger, LedgerKind } from "../governance/ledger/ledger.ts";
import type { CallsInFlight } from "../telemetry/calls-in-flight.ts";
import type { Call } from "./call.ts";
import type { CallObserver } from "./call-observer.ts";
import type { RunningCalls } from "./running-calls.ts";

/** What governed calls go through. */
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
  /** The same, made of what `check` gives. */
  readonly toJudged?: (input: I) => unknown;
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
