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

/** The opened parts of governance: policy, store, approvals, ledger. */
export interface Governance extends GovernanceParts {
  readonly source: PolicySource;
  readonly running: RunningCalls;
  readonly acts: OperatorActs;
  /** What waits for operators, here and on servers that share the store. */
  readonly approvals: ApprovalService;
  /** Follows the files that the policy comes from. */
  watch(): void;
  /** Reads them now. What is wrong is logged, and the policy stays. */
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
  /** Reads the arguments. What it throws is the caller's mistake, and counts as a call. */
  readonly check: () => I | Promise<I>;
  /** What rules see, where that is not what `check` gives. */
  readonly judged?: unknown;
  /** The same, made of what `check` gives. */
  readonly toJudged?: (input: I) => unknown;
  readonly perform: (input: I, call: Call) => Promise<T>;
  /** Hears what is left to the caller before the work begins, for endpoints that answer while it runs. */
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
  /** The same facts as in the ledger; arguments and result are as they came, secrets included. */
  readonly entry: LedgerEntry;
  readonly call: Call;
  /** What it ended with, when it did not end well. */
  readonly thrown: unknown;
  /** What is left to the caller; made when it is asked for. */
  readonly quota: () => Quota | undefined;
  readonly egressBytes: number;
  /** The one it ran in. */
  readonly sandbox: UsedSandbox | undefined;
  /** How long the call waited for its record. */
  readonly ledgerMs: number;
  /** What came before: until it was allowed, and while it ran. */
  readonly stages: { readonly policyMs: number; readonly runMs: number };
}

/** Hears of every call, for the log and the metrics. It must neither throw nor wait. */
export interface CallObserver {
  finished(call: FinishedCall): void;
  /** What a stopped call went on doing has ended: the second record of a call that was told before. */
  ranOn?(entry: LedgerEntry, call: Call): void;
}
