/**
 * JSON-RPC 2.0 on one byte stream, as server and guest speak it. A frame is `Content-Length: N`, an empty line, and N bytes
 * of JSON.
 */

/** Notification of the guest while `code.run`, `shell.exec` or `terminal.run` runs; its params are a `GuestOutput`. */
export const OUTPUT_METHOD = "output";
/** Notification of the server: the request `params.id` shall end; its answer still follows. */
export const CANCEL_METHOD = "$/cancelRequest";

/** Codes of error answers. */
export const ERROR_CODES = {
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** A failure that the caller can repair; `data` is a `GuestFailure`. */
  failure: -32050,
} as const;

const HEADER_END = "\r\n\r\n";
const HEADER = /^Content-Length: ([1-9][0-9]{0,9})\r\n\r\n$/;
const MAX_HEADER_CHARS = 40;
const EMPTY = Buffer.alloc(0);

/** The bytes of a stream are not frames. Nothing behind them can be read. */
export class FrameError extends Error {}

/** Header and body in one string: one write, which wakes the reader once. */
export function encodeFrame(message: object): string {
  const body = JSON.stringify(message);
  return `Content-Length: ${Buffer.byteLength(body)}${HEADER_END}${body}`;
}

/** Splits a stream into the bodies of its frames. The header must be exactly one length; a body over the limit is never buffered. */
export class FrameReader {
  readonly #maxBodyBytes: number;
  /** The part of a header that has arrived. */
  #header = "";
  /** Length of the body that is being read; 0 while a header is. */
  #bodyBytes = 0;
  /** One buffer for all pieces of a body: a piece of one byte in a buffer of its own takes hundreds of bytes. */
  #body = EMPTY;
  #haveBytes = 0;

  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** Whether the last chunk ended inside a frame. */
  get isInFrame(): boolean {
    return this.#header !== "" || this.#bodyBytes > 0;
  }

  /** The bodies that this chunk completes. @throws FrameError */
  *read(chunk: Buffer): Generator<Buffer> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#bodyBytes === 0) rest = this.#readHeader(rest);
      if (this.#bodyBytes === 0) return;
      const piece = rest.subarray(0, this.#bodyBytes - this.#haveBytes);
      rest = rest.subarray(piece.length);
      const isWhole = this.#haveBytes + piece.length === this.#bodyBytes;
      const body = isWhole && this.#haveBytes === 0 ? piece : this.#append(piece);
      if (!isWhole) return;
      this.#bodyBytes = 0;
      this.#haveBytes = 0;
      this.#body = EMPTY;
      yield body;
    }
  }

  /** Returns what follows the header, or nothing while the header is incomplete. */
  #readHeader(chunk: Buffer): Buffer {
    const before = this.#header.length;
    const header = this.#header + chunk.toString("latin1", 0, MAX_HEADER_CHARS - before);
    const end = header.indexOf(HEADER_END);
    if (end === -1) {
      if (header.length === MAX_HEADER_CHARS) throw new FrameError("its header is too long");
      this.#header = header;
      return EMPTY;
    }
    const digits = HEADER.exec(header.slice(0, end + HEADER_END.length))?.[1];
    if (digits === undefined) throw new FrameError("its header is not Content-Length alone");
    const bodyBytes = Number(digits);
    if (bodyBytes > this.#maxBodyBytes)
      throw new FrameError(`${bodyBytes} bytes are announced, and guest.maxFrameBytes is ${this.#maxBodyBytes}`);
    this.#header = "";
    this.#bodyBytes = bodyBytes;
    return chunk.subarray(end + HEADER_END.length - before);
  }

  /** The buffer doubles as bytes arrive: an announced length alone reserves nothing. */
  #append(piece: Buffer): Buffer {
    const haveBytes = this.#haveBytes + piece.length;
    if (haveBytes > this.#body.length) {
      const larger = Buffer.allocUnsafe(Math.min(2 * haveBytes, this.#bodyBytes));
      this.#body.copy(larger, 0, 0, this.#haveBytes);
      this.#body = larger;
    }
    piece.copy(this.#body, this.#haveBytes);
    this.#haveBytes = haveBytes;
    return this.#body.subarray(0, haveBytes);
  }
}
