import { REDACTED, type Redactor } from "./redact.ts";

/** The redactor, and beyond what it knows these texts: ids that open something. */
export function hiding(redactor: Redactor, texts: readonly string[] | undefined): Redactor {
  return texts === undefined || texts.length === 0 ? redactor : new HidingRedactor(redactor, texts);
}

export function withoutTexts(text: string, texts: readonly string[] = []): string {
  return texts.reduce((rest, hidden) => rest.replaceAll(hidden, REDACTED), text);
}

class HidingRedactor implements Redactor {
  readonly #redactor: Redactor;
  readonly #texts: readonly string[];

  constructor(redactor: Redactor, texts: readonly string[]) {
    this.#redactor = redactor;
    this.#texts = texts;
  }

  isSecretKey(name: string): boolean {
    return this.#redactor.isSecretKey(name);
  }

  text(text: string): string {
    return withoutTexts(this.#redactor.text(text), this.#texts);
  }

  isClean(text: string): boolean {
    return this.#redactor.isClean(text) && !this.#texts.some((hidden) => text.includes(hidden));
  }
}
