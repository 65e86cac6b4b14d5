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
