import type { Frame } from "playwright-core";

/** A browser that is used for days must not remember every element that it has ever seen. */
const REFS_MAX = 50_000;

/** In which frame each ref is. Numbers are never given twice in one browser. */
export class RefTable {
  /** Those of the latest snapshots last. */
  readonly #known = new Map<number, Frame>();
  #next = 1;

  get next(): number {
    return this.#next;
  }

  add(refs: readonly number[], frame: Frame, next: number): void {
    for (const ref of refs) {
      this.#known.delete(ref);
      this.#known.set(ref, frame);
    }
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= REFS_MAX) break;
      this.#known.delete(oldest);
    }
    this.#next = Math.max(this.#next, next);
  }

  frameOf(ref: number): Frame | undefined {
    const frame = this.#known.get(ref);
    return frame?.isDetached() === true ? undefined : frame;
  }
}
