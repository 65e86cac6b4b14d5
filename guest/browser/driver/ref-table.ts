import type { Frame } from "playwright-core";

/** A browser that is used for days must not remember every element that it has ever seen. */
const REFS_MAX = 50_000;

interface KnownRef {
  readonly frame: Frame;
  /** What it is, as snapshots say it. */
  readonly label: string;
}

/** In which frame each ref is. Numbers are never given twice in one browser. */
export class RefTable {
  /** Those of the latest snapshots last. */
  readonly #known = new Map<number, KnownRef>();
  #next = 1;

  get next(): number {
    return this.#next;
  }

  add(elements: Readonly<Record<string, string>>, frame: Frame, next: number): void {
    for (const [ref, label] of Object.entries(elements)) {
      this.#known.delete(Number(ref));
      this.#known.set(Number(ref), { frame, label });
    }
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= REFS_MAX) break;
      this.#known.delete(oldest);
    }
    this.#next = Math.max(this.#next, next);
  }

  labelOf(ref: number): string | undefined {
    return this.#known.get(ref)?.label;
  }

  frameOf(ref: number): Frame | undefined {
    const frame = this.#known.get(ref)?.frame;
    return frame?.isDetached() === true ? undefined : frame;
  }
}
