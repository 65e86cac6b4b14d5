import type { Cut } from "../checkpoint.ts";
import type { Appended, LedgerStore } from "../store.ts";

/** What a thread is told when it starts. */
export interface ThreadData {
  readonly role: "write" | "read";
  readonly path: string;
  readonly keyFolder: string;
  readonly checkpointEvery: number;
}

/** The calls that a thread answers. */
export interface ThreadMethods extends Omit<LedgerStore, "append" | "seal" | "cut"> {
  /** The drafts as one JSON text: copying a text between threads is far cheaper than copying a tree. */
  append(drafts: string): Promise<Appended> | Appended;
  seal(): Promise<Appended> | Appended;
  cut(beforeMs: number): Promise<Cut | undefined> | Cut | undefined;
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
