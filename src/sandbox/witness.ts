import type { GuestOutput } from "./guest-methods.ts";

/** Somebody's call that works in a sandbox. */
export interface SandboxUse {
  readonly cellId: string;
  readonly tool: string;
  readonly traceId: string;
  readonly principal: string;
  readonly input: unknown;
  /** Of code that does not say which it is in. */
  readonly language: string;
}

/** What came of it, in parts that may be shown. */
export interface UseOutcome {
  readonly value: Readonly<Record<string, unknown>>;
  readonly blocks?: readonly { readonly type: string }[];
  readonly failure?: { readonly reason: string };
}

export interface WitnessedUse {
  printed(output: GuestOutput): void;
  cameTo(outcome: UseOutcome): void;
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
export interface Witness {
  began(use: SandboxUse): WitnessedUse;
  network(cellId: string, attempt: NetworkAttempt): void;
  /** The sandbox is over. */
  ended(cellId: string, why: string): void;
}
