import type { Readable, Writable } from "node:stream";
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  Disposable,
  type DataCallback,
  type Message,
  type MessageReader,
  type MessageWriter,
} from "vscode-jsonrpc/node";
import { assertFewValues } from "./frame-values.ts";

const HEADER_END = "\r\n\r\n";
const HEADER = /^Content-Length: (\d+)$/;

/**
 * Header and body in one write, at once: the library's own writer takes several turns of the event loop for them, and the
 * reader wakes up twice. Neither side imports the other: the guest has the same in `guest/frames.ts`.
 */
export class FrameWriter extends AbstractMessageWriter implements MessageWriter {
  readonly #stream: Writable;

  constructor(stream: Writable) {
    super();
    this.#stream = stream;
    stream.on("error", (error) => this.fireError(error));
    stream.on("close", () => this.fireClose());
  }

  write(message: Message): Promise<void> {
    const body = JSON.stringify(message);
    return new Promise((resolve, reject) => {
      this.#stream.write(`Content-Length: ${Buffer.byteLength(body)}${HEADER_END}${body}`, (error) =>
        error ? reject(error) : resolve(),
      );
    });
  }

  end(): void {}
}

/** Gives each message on in the turn in which its last byte came. */
export class FrameReader extends AbstractMessageReader implements MessageReader {
  readonly #stream: Readable;
  /** Its first `#haveBytes` are there. One buffer, however many pieces come: a piece of one byte would cost hundreds. */
  #held = Buffer.alloc(0);
  #haveBytes = 0;
  /** Until so much is there, there is nothing to look at. */
  #wantBytes = 0;
  #isListening = true;

  constructor(stream: Readable) {
    super();
    this.#stream = stream;
    stream.on("error", (error) => this.fireError(error));
    stream.on("close", () => this.fireClose());
  }

  listen(callback: DataCallback): Disposable {
    const onData = (chunk: Buffer): void => {
      const bytes = this.#haveBytes === 0 ? chunk : this.#append(chunk);
      try {
        if (bytes.length >= this.#wantBytes) this.#read(bytes, callback);
      } catch (error) {
        stop();
        this.fireError(error);
      }
    };
    const stop = (): void => {
      this.#isListening = false;
      this.#stream.off("data", onData);
    };
    this.#stream.on("data", onData);
    return Disposable.create(stop);
  }

  #append(chunk: Buffer): Buffer {
    const bytes = this.#haveBytes + chunk.length;
    if (bytes > this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.max(bytes, Math.min(2 * bytes, this.#wantBytes)));
      this.#held.copy(larger, 0, 0, this.#haveBytes);
      this.#held = larger;
    }
    chunk.copy(this.#held, this.#haveBytes);
    this.#haveBytes = bytes;
    return this.#held.subarray(0, bytes);
  }

  #read(bytes: Buffer, callback: DataCallback): void {
    let rest = bytes;
    while (this.#isListening) {
      const headerEnd = rest.indexOf(HEADER_END);
      const start = headerEnd + HEADER_END.length;
      const end = headerEnd === -1 ? Number.NaN : start + bodyLength(rest.toString("latin1", 0, headerEnd));
      if (!(end <= rest.length)) {
        this.#wantBytes = Number.isNaN(end) ? 0 : end;
        this.#held = Buffer.alloc(0);
        this.#haveBytes = 0;
        this.#append(rest);
        return;
      }
      const body = rest.subarray(start, end);
      rest = rest.subarray(end);
      assertFewValues(body);
      // oxlint-disable-next-line typescript/no-unsafe-argument -- who listens looks at what it is
      callback(JSON.parse(body.toString("utf8")));
    }
  }
}

function bodyLength(header: string): number {
  const digits = HEADER.exec(header)?.[1];
  if (digits === undefined) throw new Error("a frame without its length");
  return Number(digits);
}
