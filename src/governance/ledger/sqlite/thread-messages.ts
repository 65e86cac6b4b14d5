import type { Cut } from "../checkpoint.ts";
import type { LedgerReader } from "../store.ts";

/** What a thread is told when it starts. */
export interface ThreadData {
  readonly path: string;
  readonly keyFolder: string;
  readonly checkpointEvery: number;
}

/** The calls that a thread answers: whatever may take long. */
export interface ThreadMethods extends LedgerReader {
  cut(beforeMs: number): Promise<Cut | undefined> | Cut | undefined;
  /** Moves what is in the log to the file, and lets the log begin anew. */
  emptyLog(): Promise<void> | void;
}

export interface ThreadRequest {
  readonly id: number;
  readonly method: keyof ThreadMethods;
  readonly params: readonly unknown[];
}

export interface ThreadReply {
  readonly id: number;
  readonly value?: unknown;
  /** An error's class does not survive the way; what callers need of it does. */
  readonly failure?: { readonly message: string; readonly hint: string; readonly retryable: boolean };
}
