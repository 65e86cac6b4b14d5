import type { Readable } from "node:stream";

/**
 * Slows down a client that floods its line. Nothing is refused: a message that was not read has no id to answer to, and
 * its client would wait for ever. What is not read stays in the pipe, at the client's cost.
 */
export class ReadingBrake {
  readonly #input: Readable;
  readonly #delayOf: () => number;
  #delayMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /** `delayOf` counts a message, and says how long to read no more. */
  constructor(input: Readable, delayOf: () => number) {
    this.#input = input;
    this.#delayOf = delayOf;
  }

  count(): void {
    this.#delayMs = this.#delayOf();
  }

  /** After what came at once: reads on at once, or later. */
  apply(): void {
    if (this.#delayMs === 0 || this.#timer !== undefined || this.#isStopped) return;
    this.#input.pause();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#delayMs = 0;
      if (!this.#isStopped) this.#input.resume();
    }, this.#delayMs);
  }

  /** For good. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#input.pause();
  }
}
