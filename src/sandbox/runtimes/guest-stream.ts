import { Duplex, type Readable, type Writable } from "node:stream";

/** Chunks are counted by their bytes, and one of a single byte takes hundreds: a guest may write that way. */
const BUFFERED_BYTES = 4096;

/** The guest's standard input and output as one stream. A guest that is gone ends it; it never fails on its own. */
export class GuestStream extends Duplex {
  readonly #input: Writable;
  readonly #output: Readable;

  constructor(input: Writable, output: Readable) {
    // The end of the guest's output is its end: there is nobody left to write to.
    super({ allowHalfOpen: false, readableHighWaterMark: BUFFERED_BYTES });
    this.#input = input;
    this.#output = output;
    output.on("data", (chunk: Buffer) => {
      if (!this.push(chunk)) output.pause();
    });
    output.once("end", () => this.push(null));
    output.once("error", () => this.destroy());
    // What the guest said last is still to be read when nothing can be written any more.
    input.on("error", () => undefined);
  }

  override _read(): void {
    this.#output.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    // A broken pipe is told by the end of the stream, and by the cell's exit.
    this.#input.write(chunk, () => done());
  }

  override _final(done: () => void): void {
    this.#input.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#input.destroy();
    this.#output.destroy();
    done(error);
  }
}
