import { Slots } from "../collections/slots.ts";
import type { OwlError } from "../errors/owl-error.ts";
import type { LedgerKind } from "../ledger/ledger.ts";
import type { Call } from "./call.ts";

/** Where on its way a call is: before it may run, while it runs, or behind it. */
export type CallStage = "policy" | "running" | "recording";

/** A call that has begun and has not been answered. */
export interface RunningCall {
  readonly call: Call;
  readonly kind: LedgerKind;
  readonly name: string;
  /** When it came in, in milliseconds since the epoch. */
  readonly time: number;
  readonly stage: CallStage;
  /** Ends what runs, with this as its answer. */
  stop(error: OwlError): void;
}

/** All of them. Kept whether somebody looks or not: who looks wants to see the call that hangs since yesterday. */
export class RunningCalls {
  readonly #calls = new Slots<RunningCall>();

  get size(): number {
    return this.#calls.size;
  }

  /** Gives its slot, for `delete`. */
  add(call: RunningCall): number {
    return this.#calls.add(call);
  }

  delete(slot: number | undefined): void {
    if (slot !== undefined) this.#calls.delete(slot);
  }

  [Symbol.iterator](): IterableIterator<RunningCall> {
    return this.#calls[Symbol.iterator]();
  }
}
