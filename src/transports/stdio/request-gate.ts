import { OwlError } from "../../errors/owl-error.ts";

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

  constructor(options: GateOptions) {
    this.#options = options;
  }

  async run<T>(bytes: number, task: () => Promise<T>): Promise<T> {
    const { maxRunning, maxWaitingBytes } = this.#options;
    if (this.#running >= maxRunning) {
      if (this.#waitingBytes + bytes > maxWaitingBytes) {
        throw new OwlError("overloaded", `${this.#running} requests run and ${this.#waiting.length} wait already`);
      }
      this.#waitingBytes += bytes;
      await new Promise<void>((start) => this.#waiting.push({ bytes, start }));
    } else this.#running += 1;
    try {
      return await task();
    } finally {
      this.#passOn();
    }
  }

  /** Whoever waits longest takes over the place; without anybody, it is free. */
  #passOn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else {
      this.#waitingBytes -= next.bytes;
      next.start();
    }
  }
}
