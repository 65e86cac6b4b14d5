/** The newest entries of something that never ends. */
export class LogRing {
  readonly #maxEntries: number;
  readonly #maxChars: number;
  #entries: string[] = [];
  #dropped = 0;

  constructor(maxEntries: number, maxChars: number) {
    this.#maxEntries = maxEntries;
    this.#maxChars = maxChars;
  }

  add(entry: string): void {
    this.#entries.push(entry.slice(0, this.#maxChars));
    if (this.#entries.length <= this.#maxEntries) return;
    this.#entries.shift();
    this.#dropped += 1;
  }

  newest(count: number): { readonly entries: readonly string[]; readonly dropped: number } {
    const left = Math.max(0, this.#entries.length - count);
    return { entries: this.#entries.slice(left), dropped: this.#dropped + left };
  }
}
