import { OwlError } from "../../errors/owl-error.ts";
import type { Readable } from "node:stream";

const NEWLINE = 0x0a;

export type Line = { readonly ok: true; readonly bytes: Buffer } | { readonly ok: false; readonly error: OwlError };

/**
 * Splits a byte stream into lines, independent of its chunks. A line that is too long is rejected once and skipped to
 * its end.
 */
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

  /** The stream has ended. Bytes without a newline at the end count as a line. */
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
 * Slows down a client that floods the server. Nothing is rejected: an unread message has no id to answer to, and its
 * client would wait without end. Unread messages stay in the pipe.
 */
export class FloodDelay {
  readonly #input: Readable;
  readonly #delayOf: () => number;
  #delayMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /** `delayOf` counts a message and returns for how long to stop reading. */
  constructor(input: Readable, delayOf: () => number) {
    this.#input = input;
    this.#delayOf = delayOf;
  }

  count(): void {
    this.#delayMs = this.#delayOf();
  }

  /** Called after each chunk: stops reading for the delay, if there is one. */
  apply(): void {
    if (this.#delayMs === 0 || this.#timer !== undefined || this.#isStopped) return;
    this.#input.pause();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#delayMs = 0;
      if (!this.#isStopped) this.#input.resume();
    }, this.#delayMs);
  }

  /** Stops reading permanently. */
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
 * Limits the number of requests that run at the same time; the others are queued. Responses and cancellations do not
 * pass this gate, because running calls may wait for them.
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

  /** Starts no more requests until `resume`: the client does not read its answers. */
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

  /**
   * Starts queued requests in order. Counts each as running before it starts, so that no new request takes its slot.
   */
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
