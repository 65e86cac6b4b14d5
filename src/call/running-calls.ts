import { Slots } from "../platform/slots.ts";
import type { OwlError } from "../errors/owl-error.ts";
import type { LedgerKind } from "../governance/ledger/ledger.ts";
import type { Call } from "./call.ts";
import { STOP_GRACE_MS } from "./watched-run.ts";

/** The stage of a call: before it may run, while it runs, or while it is recorded. */
export type CallStage = "policy" | "running" | "recording";

/** A call that has begun and has not been answered. */
export interface RunningCall {
  readonly call: Call;
  readonly kind: LedgerKind;
  readonly name: string;
  /** When it arrived, in milliseconds since the epoch. */
  readonly time: number;
  readonly stage: CallStage;
  /** Stops the run, with this error as its answer. */
  stop(error: OwlError): void;
}

/** All running calls. Always kept, so that an operator can also find a call that has hung since yesterday. */
export class RunningCalls {
  readonly #calls = new Slots<RunningCall>();
  #onEmpty: () => void = () => undefined;
  /** How long a stopped call may take to end before its row is written without waiting any longer. */
  stopGraceMs: number = STOP_GRACE_MS;

  get size(): number {
    return this.#calls.size;
  }

  /** Returns its slot, for `delete`. */
  add(call: RunningCall): number {
    return this.#calls.add(call);
  }

  delete(slot: number | undefined): void {
    if (slot !== undefined) this.#calls.delete(slot);
    if (this.#calls.size === 0) this.#onEmpty();
  }

  /** Resolves when each of them has its row, or after this time. */
  whenEmpty(maxMs: number): Promise<void> {
    if (this.#calls.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, maxMs);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  [Symbol.iterator](): IterableIterator<RunningCall> {
    return this.#calls[Symbol.iterator]();
  }
}
