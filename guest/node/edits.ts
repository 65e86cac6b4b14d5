interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Changes to a text, by its original positions. */
export class Edits {
  readonly #source: string;
  readonly #edits: Edit[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  replace(start: number, end: number, text: string): void {
    this.#edits.push({ start, end, text });
  }

  insert(at: number, text: string): void {
    this.#edits.push({ start: at, end: at, text });
  }

  /** How many line breaks the original has between two positions. */
  lineBreaks(start: number, end: number): number {
    return this.#source.slice(start, end).split("\n").length - 1;
  }

  apply(): string {
    let result = "";
    let position = 0;
    for (const { start, end, text } of this.#edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
      result += this.#source.slice(position, start) + text;
      position = Math.max(position, end);
    }
    return result + this.#source.slice(position);
  }
}
