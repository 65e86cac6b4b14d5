import { OwlError } from "../errors/owl-error.ts";

/** Remembers states that are good for one call. Servers that share their load may share it. */
export interface UsedStates {
  /** False when it was used before. */
  use(id: string, lifeMs: number): boolean | Promise<boolean>;
}

const MAX_KEPT = 100_000;

/** In the memory of this process, each until its state has ended by itself. */
export class KeptStates implements UsedStates {
  readonly #until = new Map<string, number>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  use(id: string, lifeMs: number): boolean {
    const nowMs = this.#nowMs();
    this.#forgetOld(nowMs);
    if (this.#until.has(id)) return false;
    // Forgetting one early would let it be used twice.
    if (this.#until.size >= MAX_KEPT)
      throw new OwlError("overloaded", "too many calls were continued with answers within a short time");
    this.#until.set(id, nowMs + lifeMs);
    return true;
  }

  /** They stand in the order in which they came. */
  #forgetOld(nowMs: number): void {
    for (const [id, untilMs] of this.#until) {
      if (untilMs > nowMs) return;
      this.#until.delete(id);
    }
  }
}
