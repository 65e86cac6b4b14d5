import { setImmediate } from "node:timers/promises";

const SLICE_MS = 5;

/** Lets others have their turn when work has taken its slice of time. */
export class Breather {
  #sinceMs = performance.now();

  async breathe(): Promise<void> {
    if (performance.now() - this.#sinceMs < SLICE_MS) return;
    await setImmediate();
    this.#sinceMs = performance.now();
  }
}
