import { createHash } from "node:crypto";

interface StoredText {
  readonly text: string;
  holders: number;
}

/** Texts that are kept for a while, each once: sandboxes that begin with the same folder begin with the same texts. */
export class TextStore {
  readonly #maxChars: number;
  readonly #texts = new Map<string, StoredText>();
  #chars = 0;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** How much is kept for everybody. */
  get chars(): number {
    return this.#chars;
  }

  /** The text as it is kept; nothing where there is no room for another one. */
  keep(text: string): string | undefined {
    const key = keyOf(text);
    const stored = this.#texts.get(key);
    if (stored !== undefined) {
      stored.holders += 1;
      return stored.text;
    }
    if (this.#chars + text.length > this.#maxChars) return undefined;
    this.#texts.set(key, { text, holders: 1 });
    this.#chars += text.length;
    return text;
  }

  /** As often as it was kept. */
  drop(text: string): void {
    const key = keyOf(text);
    const stored = this.#texts.get(key);
    if (stored === undefined) return;
    stored.holders -= 1;
    if (stored.holders > 0) return;
    this.#texts.delete(key);
    this.#chars -= text.length;
  }
}

/** A map of texts alone would compare long ones of the same length with each other, letter by letter. */
function keyOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
