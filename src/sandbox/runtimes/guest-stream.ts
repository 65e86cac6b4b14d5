import { Duplex, type Readable, type Writable } from "node:stream";

/** Small: a guest may write single bytes, and a chunk of one byte takes hundreds of bytes of memory. */
const BUFFERED_BYTES = 4096;

/** The guest's stdin and stdout as one stream. It ends with the guest and emits no error of its own. */
export class GuestStream extends Duplex {
  readonly #input: Writable;
  readonly #output: Readable;

  constructor(input: Writable, output: Readable) {
    // The guest has exited when its output ends.
    super({ allowHalfOpen: false, readableHighWaterMark: BUFFERED_BYTES });
    this.#input = input;
    this.#output = output;
    output.on("data", (chunk: Buffer) => {
      if (!this.push(chunk)) output.pause();
    });
    output.once("end", () => this.push(null));
    output.once("error", () => this.destroy());
    // When writing fails, the last output can still be read.
    input.on("error", () => undefined);
  }

  override _read(): void {
    this.#output.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    // A broken pipe shows as the end of the stream and the exit of the instance.
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
