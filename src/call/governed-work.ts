import type { ApprovalService } from "../governance/approval/approval-service.ts";
import type { PolicySource } from "../governance/policy/policy-source.ts";
import type { OperatorActs } from "./operator-acts.ts";
import type { Governor } from "../governance/governor.ts";
import type { Quota } from "../governance/quota.ts";
import type { Subject } from "../governance/subject.ts";
import type { Ledger, LedgerKind, LedgerEntry } from "../governance/ledger/ledger.ts";
import type { CallsInFlight } from "../telemetry/calls-in-flight.ts";
import type { Call } from "./call.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { UsedSandbox } from "../capability/context.ts";

/** The parts of governance that a call needs. */
export interface GovernanceParts {
  readonly governor: Governor;
  readonly ledger: Ledger;
  /** Counts the calls in flight, so that their rows can be written together. */
  readonly inFlight?: CallsInFlight;
  readonly observer?: CallObserver | undefined;
  /** The running calls, to list and to stop them. */
  readonly running?: RunningCalls;
}

/** The opened parts of governance: policy, store, approvals, ledger. */
export interface Governance extends GovernanceParts {
  readonly source: PolicySource;
  readonly running: RunningCalls;
  readonly acts: OperatorActs;
  /** The calls that wait for operators, on this server and on those that share the store. */
  readonly approvals: ApprovalService;
  /** Starts to watch the files that the policy comes from. */
  watch(): void;
  /** Reads them now. Problems are logged, and the policy in force stays. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/** One call, read or prompt that a caller asks for. */
export interface GovernedWork<I, T> {
  readonly kind: LedgerKind;
  readonly subject: Subject;
  readonly calledAs: string;
  readonly args: unknown;
  readonly call: Call;
  /** Validates the arguments. An error is the caller's mistake, and counts as a call. */
  readonly check: () => I | Promise<I>;
  /** The arguments as rules see them, when that is not the result of `check`. */
  readonly judged?: unknown;
  /** The same, made from the result of `check`. */
  readonly toJudged?: (input: I) => unknown;
  readonly perform: (input: I, call: Call) => Promise<T>;
  /**
   * Receives what the caller has left of its limits before the work begins, for endpoints that answer while it runs.
   */
  readonly onAdmitted?: (quota: Quota) => void;
  /** For endpoints whose arguments may not show what is done. @throws OwlError before an operator is asked. */
  readonly assertShown?: ((rule: string) => void) | undefined;
  /** What the ledger keeps of the value. Default: all of it, bounded. */
  readonly toRecord?: ((value: T) => unknown) | undefined;
}

export interface Governed<T> {
  readonly value: T;
  readonly quota: Quota | undefined;
}

/** A call that is over, allowed or refused. */
export interface FinishedCall {
  /** The same facts as in the ledger, but arguments and result are not redacted. */
  readonly entry: LedgerEntry;
  readonly call: Call;
  /** The error that it ended with, if any. */
  readonly thrown: unknown;
  /** What the caller has left of its limits; computed on demand. */
  readonly quota: () => Quota | undefined;
  readonly egressBytes: number;
  /** The sandbox that it ran in. */
  readonly sandbox: UsedSandbox | undefined;
  /** How long the call waited for its record. */
  readonly ledgerMs: number;
  /** How long it took until the call was admitted, and how long it ran. */
  readonly stages: { readonly policyMs: number; readonly runMs: number };
}

/** Receives every finished call, for the log and the metrics. It must neither throw nor wait. */
export interface CallObserver {
  finished(call: FinishedCall): void;
  /** The run of a stopped call has ended: the second record of a call that was reported before. */
  ranOn?(entry: LedgerEntry, call: Call): void;
}
