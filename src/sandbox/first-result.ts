/** Measures how long the first thing takes that is done in a sandbox. */
export class FirstResult {
  readonly #onResult: ((durationMs: number) => void) | undefined;
  #isThere = false;

  constructor(onResult: ((durationMs: number) => void) | undefined) {
    this.#onResult = onResult;
  }

  of<T>(work: () => Promise<T>): Promise<T> {
    return this.#isThere ? work() : this.#measure(work);
  }

  async #measure<T>(work: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    const result = await work();
    if (!this.#isThere) this.#onResult?.(performance.now() - startMs);
    this.#isThere = true;
    return result;
  }
}
