import type { ReservedCost, StartedCall } from "./started-calls.ts";
import type { LedgerReader } from "./store.ts";

/** What was called. `task`: a word to a task that runs. `admin`: an operator's own act, such as an approval. */
export type LedgerKind = "tool" | "resource" | "prompt" | "completion" | "list" | "task" | "admin";

/** `unknown`: the server ended before the call did. */
export type LedgerOutcome = "ok" | "refused" | "failed" | "cancelled" | "timeout" | "suspended" | "unknown";

export type LedgerDecision = "allow" | "deny";

/** What the pipeline knows of one finished or refused call. Arguments and result are redacted and bounded on their way in. */
export interface LedgerEntry {
  /** When the call came in, in milliseconds since the epoch. */
  readonly time: number;
  readonly principal: string;
  /** What the client calls itself; no proof of anything. */
  readonly label: string | undefined;
  readonly transport: string;
  readonly kind: LedgerKind;
  /** The operation's native name, or the URI. */
  readonly name: string;
  /** The name the caller used. */
  readonly calledAs: string;
  readonly args: unknown;
  readonly result: unknown;
  readonly outcome: LedgerOutcome;
  readonly errorKind: string | undefined;
  readonly decision: LedgerDecision;
  /** Id of the rule that decided. */
  readonly rule: string;
  readonly policyRevision: string;
  readonly durationMs: number;
  readonly costMicros: number;
  readonly traceId: string;
  readonly sandbox: string | undefined;
  readonly flags: readonly string[];
  /** How many calls it stands for: none, where a call has a row already. Default 1. */
  readonly count?: number;
  /** Texts that are taken out wherever they stand: ids that open something. */
  readonly secrets?: readonly string[] | undefined;
}

/** A point of the chain that can be published and held against the ledger later. */
export interface LedgerHead {
  readonly seq: number;
  /** Hexadecimal. */
  readonly hash: string;
}

/** The record of every call. */
export interface Ledger {
  /**
   * Before a call runs: records that it begins, with the row that it gets if this process ends before the call does.
   * @throws OwlError with `store_unavailable` when that cannot be recorded.
   */
  begin(entry: LedgerEntry, reserved: ReservedCost): StartedCall;
  /** This is the row that the call, or the rest of its work, gets if this process ends first. Never throws. */
  continues(call: StartedCall, entry: LedgerEntry, reserved: ReservedCost): void;
  /** Its cost is about to be booked. Never throws. */
  settles(call: StartedCall, costMicros: number): void;
  /** The call gets no row. */
  forget(call: StartedCall): void;
  /**
   * Resolves when the entry is on disk. Rejects with `store_unavailable` when it cannot be made durable; the next
   * call tries anew. `started` has its row then. A refusal that repeats an earlier one resolves with the row that counts it.
   */
  append(entry: LedgerEntry, started?: StartedCall): Promise<{ readonly seq: number }>;
  /** Whether the last attempt to write worked; for health checks. */
  readonly isHealthy: boolean;
  /** Rows were lost, and no operator has acknowledged it. */
  readonly hasOpenLoss: boolean;
  /** Lists, statistics, verification. They run beside the writes and hold up neither them nor the server's loop. */
  readonly reader: LedgerReader;
  /** Writes what is pending, closes counted refusals, signs the head. May be called twice. */
  close(): Promise<void>;
}
