import type { UsedSandbox } from "../capability/context.ts";
import type { Quota } from "../governance/quota.ts";
import type { LedgerEntry } from "../governance/ledger/ledger.ts";
import type { Call } from "./call.ts";

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
