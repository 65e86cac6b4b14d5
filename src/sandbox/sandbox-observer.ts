import type { GuestOutput } from "../../contract/guest.ts";

/** Somebody's call that works in a sandbox. */
export interface ObservedCall {
  readonly instanceId: string;
  readonly tool: string;
  readonly traceId: string;
  readonly principal: string;
  readonly input: unknown;
  /** Of code that does not say which it is in. */
  readonly language: string;
}

/** What came of it, in parts that may be shown. */
export interface CallOutcome {
  readonly value: Readonly<Record<string, unknown>>;
  readonly blocks?: readonly { readonly type: string }[];
  readonly failure?: { readonly reason: string };
}

export interface CallRecorder {
  output(output: GuestOutput): void;
  outcome(outcome: CallOutcome): void;
  ended(): void;
}

/** One attempt to reach something over the network. */
export interface NetworkAttempt {
  readonly host: string;
  readonly port: number;
  readonly allowed: boolean;
  readonly rule?: string;
  readonly reason?: string;
}

/** Sees what happens in sandboxes, for people who look on. It must neither throw nor wait. */
export interface SandboxObserver {
  callStarted(use: ObservedCall): CallRecorder;
  network(instanceId: string, attempt: NetworkAttempt): void;
  /** The sandbox is over. */
  ended(instanceId: string, why: string): void;
}
