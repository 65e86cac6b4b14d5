import { Transform, type TransformCallback } from "node:stream";

/** What came out of a sandbox is not what the guest would send: user code took it over, and the place is ended. */
export class MalformedFrame extends Error {
  constructor(reason: string) {
    super(`malformed frame: ${reason}`);
    this.name = "MalformedFrame";
  }
}

const HEADER = /^Content-Length: ([1-9][0-9]{0,9})\r\n\r\n$/;
const HEADER_END = "\r\n\r\n";
const MAX_HEADER_CHARS = 40;

/** A sandbox may make the host read this much at once, and then so much a second; more waits, and with it the sandbox. */
const BURST_COST = 16 * 1024 * 1024;
const COST_PER_SECOND = 32 * 1024 * 1024;
/** Small frames cost the host more than their bytes. */
const FRAME_COST = 2048;
/** A stream that comes byte by byte wakes the host up for each. */
const CHUNK_COST = 2048;
/** Chunks that wait are counted by their bytes, and one byte takes hundreds. */
const BUFFERED_BYTES = 4096;

/**
 * Stands in front of the library that reads the stream, which would buffer a frame of any announced size. Only whole
 * frames' bytes pass, each with one strict header; a flood is slowed down to what the host can bear.
 */
export class FrameLimit extends Transform {
  readonly #maxFrameBytes: number;
  #header = "";
  #bodyBytesLeft = 0;
  #credit = BURST_COST;
  #creditAtMs = performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(maxFrameBytes: number) {
    super({ highWaterMark: BUFFERED_BYTES });
    this.#maxFrameBytes = maxFrameBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let frames: number;
    try {
      frames = this.#scan(chunk);
    } catch (error) {
      done(error instanceof Error ? error : new MalformedFrame("unreadable"));
      return;
    }
    const waitMs = this.#spend(CHUNK_COST + chunk.length + frames * FRAME_COST);
    if (waitMs === 0) done(null, chunk);
    else this.#timer = setTimeout(() => done(null, chunk), waitMs);
  }

  override _flush(done: TransformCallback): void {
    const isWhole = this.#header === "" && this.#bodyBytesLeft === 0;
    // No violation: a guest that is killed while it writes ends like this.
    done(isWhole ? null : new Error("its stream ended in the middle of a frame"));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer);
    done(error);
  }

  /** Follows the frames through the chunk; returns how many began in it. */
  #scan(chunk: Buffer): number {
    let frames = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#bodyBytesLeft > 0) {
        const skipped = Math.min(this.#bodyBytesLeft, chunk.length - at);
        this.#bodyBytesLeft -= skipped;
        at += skipped;
        continue;
      }
      const wanted = MAX_HEADER_CHARS - this.#header.length;
      const piece = chunk.toString("latin1", at, Math.min(chunk.length, at + wanted));
      const before = this.#header.length;
      const header = this.#header + piece;
      const end = header.indexOf(HEADER_END);
      if (end === -1) {
        if (header.length >= MAX_HEADER_CHARS) throw new MalformedFrame("its header is too long");
        this.#header = header;
        return frames;
      }
      this.#bodyBytesLeft = this.#readLength(header.slice(0, end + HEADER_END.length));
      this.#header = "";
      at += end + HEADER_END.length - before;
      frames += 1;
    }
    return frames;
  }

  #readLength(header: string): number {
    const match = HEADER.exec(header);
    if (match === null) throw new MalformedFrame("its header is not Content-Length alone");
    const length = Number(match[1]);
    if (length > this.#maxFrameBytes)
      throw new MalformedFrame(`${length} bytes are announced, and guest.maxFrameBytes is ${this.#maxFrameBytes}`);
    return length;
  }

  #spend(cost: number): number {
    const nowMs = performance.now();
    const earned = ((nowMs - this.#creditAtMs) / 1000) * COST_PER_SECOND;
    this.#credit = Math.min(BURST_COST, this.#credit + earned) - cost;
    this.#creditAtMs = nowMs;
    return this.#credit >= 0 ? 0 : Math.ceil((-this.#credit / COST_PER_SECOND) * 1000);
  }
}
