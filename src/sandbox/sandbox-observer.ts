import type { GuestOutput } from "../../contract/guest.ts";

/** A call that uses a sandbox. */
export interface ObservedCall {
  readonly instanceId: string;
  readonly tool: string;
  readonly traceId: string;
  readonly principal: string;
  readonly input: unknown;
  /** The language of code when the input names none. */
  readonly language: string;
}

/** The result, in parts that may be shown. */
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

/** One connection attempt over the network. */
export interface NetworkAttempt {
  readonly host: string;
  readonly port: number;
  readonly allowed: boolean;
  readonly rule?: string;
  readonly reason?: string;
}

/** Receives what happens in sandboxes, for the dashboard. Its methods must neither throw nor wait. */
export interface SandboxObserver {
  callStarted(use: ObservedCall): CallRecorder;
  network(instanceId: string, attempt: NetworkAttempt): void;
  /** The sandbox has ended. */
  ended(instanceId: string, why: string): void;
}
