import { hash, type KeyObject } from "node:crypto";

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** In UTF-8 a character of a JavaScript string takes at most three. */
const BYTES_PER_CHAR = 3;

/**
 * HMAC-SHA256 (RFC 2104) under one key, as two plain digests. Node sets up a keyed digest anew for each text, which costs
 * three times as much as hashing a row.
 */
export class ChainMac {
  /** The key for the first digest, and room for the text behind it. */
  #inner: Buffer;
  /** The key for the second, and behind it what the first one gave. */
  readonly #outer: Buffer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x5c);

  constructor(key: KeyObject) {
    const secret = key.export();
    if (secret.length > BLOCK_BYTES) throw new RangeError("the chain's key is longer than a block");
    this.#inner = Buffer.alloc(BLOCK_BYTES, 0x36);
    for (const [index, byte] of secret.entries()) {
      this.#inner[index] = byte ^ 0x36;
      this.#outer[index] = byte ^ 0x5c;
    }
  }

  /** Of the texts one behind the other, in hexadecimal. */
  of(...texts: readonly string[]): string {
    let end = BLOCK_BYTES;
    for (const text of texts) {
      this.#makeRoom(end + text.length * BYTES_PER_CHAR);
      end += this.#inner.write(text, end, "utf8");
    }
    // A text of digits is made faster than a buffer.
    const first = hash("sha256", this.#inner.subarray(0, end), "hex");
    this.#outer.write(first, BLOCK_BYTES, "hex");
    return hash("sha256", this.#outer, "hex");
  }

  #makeRoom(bytes: number): void {
    if (this.#inner.length < bytes) this.#inner = Buffer.concat([this.#inner], bytes * 2);
  }
}
