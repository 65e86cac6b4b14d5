import { OwlError } from "../../errors/owl-error.ts";
import type { Readable } from "node:stream";

const NEWLINE = 0x0a;

export type Line = { readonly ok: true; readonly bytes: Buffer } | { readonly ok: false; readonly error: OwlError };

/** Cuts a stream of bytes into lines, whatever the chunks. A line that is too long is refused once and skipped to its end. */
export class LineReader {
  readonly #maxBytes: number;
  readonly #onLine: (line: Line) => void;
  #parts: Buffer[] = [];
  #size = 0;
  #skipping = false;

  constructor(maxBytes: number, onLine: (line: Line) => void) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      if (end === -1) break;
      this.#append(chunk.subarray(start, end));
      this.#finish();
      start = end + 1;
    }
    if (start < chunk.length) this.#append(chunk.subarray(start));
  }

  /** The stream has ended; what came without a newline still counts. */
  end(): void {
    if (this.#size > 0 || this.#skipping) this.#finish();
  }

  #append(part: Buffer): void {
    if (this.#skipping) return;
    this.#size += part.length;
    if (this.#size > this.#maxBytes) {
      this.#skipping = true;
      this.#parts = [];
      const error = new OwlError("invalid_request", `the line is longer than ${this.#maxBytes} bytes`, {
        facts: { limit: this.#maxBytes },
        hint: "send less at once, or raise stdio.maxLineBytes",
      });
      this.#onLine({ ok: false, error });
    } else this.#parts.push(part);
  }

  #finish(): void {
    const parts = this.#parts;
    const skipped = this.#skipping;
    this.#parts = [];
    this.#size = 0;
    this.#skipping = false;
    if (skipped) return;
    const [first] = parts;
    this.#onLine({ ok: true, bytes: parts.length === 1 && first !== undefined ? first : Buffer.concat(parts) });
  }
}

/**
 * Slows down a client that floods its line. Nothing is refused: a message that was not read has no id to answer to, and
 * its client would wait for ever. What is not read stays in the pipe, at the client's cost.
 */
export class FloodDelay {
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

export interface GateOptions {
  readonly maxRunning: number;
  readonly maxWaitingBytes: number;
}

/**
 * Lets so many requests run at a time; the others wait their turn. Only requests pass here: answers and cancellations
 * must get through, or calls that wait for them would hold the gate shut.
 */
export class RequestGate {
  readonly #options: GateOptions;
  readonly #waiting: { readonly bytes: number; readonly start: () => void }[] = [];
  #running = 0;
  #waitingBytes = 0;
  #isPaused = false;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Starts nothing more until `resume`: the client does not read what it has asked for already. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#startWaiting();
  }

  async run<T>(bytes: number, task: () => Promise<T>): Promise<T> {
    if (this.#isPaused || this.#running >= this.#options.maxRunning) await this.#wait(bytes);
    else this.#running += 1;
    try {
      return await task();
    } finally {
      this.#running -= 1;
      this.#startWaiting();
    }
  }

  #wait(bytes: number): Promise<void> {
    if (this.#waitingBytes + bytes > this.#options.maxWaitingBytes) {
      throw new OwlError("overloaded", `${this.#running} requests run and ${this.#waiting.length} wait already`);
    }
    this.#waitingBytes += bytes;
    return new Promise<void>((start) => this.#waiting.push({ bytes, start }));
  }

  /** Whoever waits longest comes first; the place is taken at once, so that nobody slips in between. */
  #startWaiting(): void {
    while (!this.#isPaused && this.#running < this.#options.maxRunning) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#waitingBytes -= next.bytes;
      this.#running += 1;
      next.start();
    }
  }
}
