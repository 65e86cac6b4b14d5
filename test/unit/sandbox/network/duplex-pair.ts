import { Duplex } from "node:stream";

/** Two ends of one stream; a reader that is slow slows the writer down. */
export function duplexPair(): [Duplex, Duplex] {
  const near = new End();
  const far = new End();
  near.other = far;
  far.other = near;
  return [near, far];
}

class End extends Duplex {
  other: End | undefined;
  #resume: (() => void) | undefined;

  constructor() {
    super({ allowHalfOpen: true });
  }

  override _read(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.other?.give(chunk, done);
  }

  override _final(done: () => void): void {
    this.other?.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.other?.push(null);
    done(error);
  }

  give(chunk: Buffer, done: () => void): void {
    if (this.push(chunk)) done();
    else this.#resume = done;
  }
}
