/** The latest part of an endless text, addressed by how many characters came before. */
export class OutputRing {
  readonly #maxChars: number;
  #pieces: string[] = [];
  #keptChars = 0;
  #totalChars = 0;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  get totalChars(): number {
    return this.#totalChars;
  }

  push(text: string): void {
    this.#pieces.push(text);
    this.#keptChars += text.length;
    this.#totalChars += text.length;
    for (let first = this.#pieces[0]; first !== undefined; first = this.#pieces[0]) {
      if (this.#keptChars - first.length < this.#maxChars) break;
      this.#pieces.shift();
      this.#keptChars -= first.length;
    }
  }

  read(cursor: number, maxChars: number): { text: string; cursor: number; skippedChars: number } {
    const firstKept = this.#totalChars - this.#keptChars;
    const from = Math.min(Math.max(cursor, firstKept), this.#totalChars);
    const text = this.#pieces.join("").slice(from - firstKept, from - firstKept + maxChars);
    // Half of a surrogate pair waits for its other half.
    const whole = text.length > 1 && /[\uD800-\uDBFF]$/u.test(text) ? text.slice(0, -1) : text;
    return { text: whole, cursor: from + whole.length, skippedChars: Math.max(0, from - cursor) };
  }
}
