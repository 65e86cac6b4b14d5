import { Slots } from "../platform/slots.ts";

/**
 * The lifetime of a call, like an `AbortSignal` but without its cost: making a signal costs more than a short call, and
 * most calls never use theirs. The signal is made on demand.
 */
export class Lifeline {
  #isOver = false;
  #isSettled = false;
  #reason: unknown;
  #listeners: Slots<() => void> | undefined;
  #controller: AbortController | undefined;

  static of(signal: AbortSignal): Lifeline {
    const life = new Lifeline();
    if (signal.aborted) life.end(signal.reason);
    else signal.addEventListener("abort", () => life.end(signal.reason), { once: true });
    return life;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The call has its outcome, or was ended: its messages cannot reach the client any more. */
  get isSettled(): boolean {
    return this.#isSettled || this.#isOver;
  }

  /** The run of the call has ended by itself, whenever the call ended. */
  get hasOutcome(): boolean {
    return this.#isSettled;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isOver) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  end(reason?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const listener of this.#listeners ?? []) listener();
    this.#listeners = undefined;
  }

  settle(): void {
    this.#isSettled = true;
  }

  /** Calls back at the end, or at once if it is over already. Returns a function that removes the listener. */
  onEnd(listener: () => void): () => void {
    if (this.#isOver) {
      listener();
      return noop;
    }
    this.#listeners ??= new Slots();
    const listeners = this.#listeners;
    const slot = listeners.add(listener);
    // May be called twice: by then the slot may belong to another listener.
    return () => void (listeners.get(slot) === listener && listeners.delete(slot));
  }
}

function noop(): void {}
