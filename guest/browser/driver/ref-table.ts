import type { Frame } from "playwright-core";

/** In which frame each ref is. Numbers are never given twice in one browser. */
export class RefTable {
  readonly #frames = new Map<number, Frame>();
  readonly #labels = new Map<number, string>();
  #next = 1;

  get next(): number {
    return this.#next;
  }

  /** `elements`: ref to what it is, as snapshots say it. */
  add(elements: Readonly<Record<string, string>>, frame: Frame, next: number): void {
    for (const [ref, label] of Object.entries(elements)) {
      this.#frames.set(Number(ref), frame);
      this.#labels.set(Number(ref), label);
    }
    this.#next = Math.max(this.#next, next);
  }

  labelOf(ref: number): string | undefined {
    return this.#labels.get(ref);
  }

  frameOf(ref: number): Frame | undefined {
    const frame = this.#frames.get(ref);
    return frame?.isDetached() === true ? undefined : frame;
  }
}
