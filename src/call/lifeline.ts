import { Slots } from "../platform/slots.ts";

/**
 * How long a call may live, as an `AbortSignal` says it, but free of charge: making a signal costs more than a short
 * call, and most calls never look at theirs. The signal is made when somebody asks for it.
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

  /** The call has its outcome, or its end: nothing that it says now can reach anybody. */
  get isSettled(): boolean {
    return this.#isSettled || this.#isOver;
  }

  /** What ran for the call has come to its own end, whenever the call had its. */
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

  /** Calls back at the end, at once if it is over already. Gives a function that takes the listener away. */
  onEnd(listener: () => void): () => void {
    if (this.#isOver) {
      listener();
      return noop;
    }
    this.#listeners ??= new Slots();
    const listeners = this.#listeners;
    const slot = listeners.add(listener);
    // Twice is no harm: by then the slot may be somebody else's.
    return () => void (listeners.get(slot) === listener && listeners.delete(slot));
  }
}

function noop(): void {}
