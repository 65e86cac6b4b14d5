import { type Envelope, type ForwardSeal, refused } from "./forward-seal.ts";

const LENGTH_BYTES = 4;
const MAX_PIECE_BYTES = 256 * 1024 * 1024;

/** Seals an answer piece by piece: none can be left out, put in another place or come from another answer. */
export class PieceWriter {
  readonly #seal: ForwardSeal;
  readonly #envelope: Envelope;
  #next = 0;

  constructor(seal: ForwardSeal, envelope: Envelope) {
    this.#seal = seal;
    this.#envelope = envelope;
  }

  write(text: string): Buffer {
    const sealed = this.#seal.seal(this.#envelope, `answer ${this.#next}`, text);
    this.#next += 1;
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(sealed.length);
    return Buffer.concat([length, sealed]);
  }
}

/** Opens what a `PieceWriter` has sealed, however the network has cut it. */
export class PieceReader {
  readonly #seal: ForwardSeal;
  readonly #envelope: Envelope;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #needed = LENGTH_BYTES;
  #next = 0;

  constructor(seal: ForwardSeal, envelope: Envelope) {
    this.#seal = seal;
    this.#envelope = envelope;
  }

  /** The pieces that this chunk completes. @throws OwlError when one is not what belongs here. */
  *read(chunk: Buffer): Iterable<string> {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= this.#needed) {
      const held = Buffer.concat(this.#chunks);
      const end = LENGTH_BYTES + held.readUInt32BE();
      if (end > MAX_PIECE_BYTES) throw refused("its content is too large");
      this.#chunks = [held];
      this.#needed = end;
      if (held.length < end) return;
      const text = this.#seal.open(this.#envelope, `answer ${this.#next}`, held.subarray(LENGTH_BYTES, end));
      this.#next += 1;
      this.#chunks = [held.subarray(end)];
      this.#bytes = held.length - end;
      this.#needed = LENGTH_BYTES;
      yield text;
    }
  }
}
