/** Nothing larger is ever sent; whoever announces more is not one of us. */
export const MAX_PAYLOAD_BYTES: number = 64 * 1024;

const HEADER_BYTES = 9;
const TYPES = ["hello", "open", "data", "end", "reset", "credit"] as const;
const NOTHING = Buffer.alloc(0);

/**
 * `hello`: the inside listens. `open`: a new connection; only the inside says so, each time with a higher number. `end`: no more
 * bytes this way. `reset`: the connection is over. `credit`: so many bytes were passed on, and as many more may come.
 */
export type FrameType = (typeof TYPES)[number];

export interface Frame {
  readonly type: FrameType;
  readonly channel: number;
  readonly payload: Buffer;
}

/** The other side does not keep to the rules: nothing more is believed of it. */
export class RelayProtocolError extends Error {
  constructor(reason: string) {
    super(`the line of the network carries rubbish: ${reason}`);
    this.name = "BrokenLine";
  }
}

export function encodeFrame(type: FrameType, channel: number, payload: Buffer = NOTHING): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.writeUInt8(TYPES.indexOf(type), 0);
  frame.writeUInt32BE(channel, 1);
  frame.writeUInt32BE(payload.length, 5);
  payload.copy(frame, HEADER_BYTES);
  return frame;
}

export function encodeCredit(channel: number, bytes: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(bytes, 0);
  return encodeFrame("credit", channel, payload);
}

export function creditOf({ payload }: Frame): number {
  if (payload.length !== 4) throw new RelayProtocolError("a credit without its number");
  return payload.readUInt32BE(0);
}

/** Takes bytes as they come; never holds more than one frame that is not whole. */
export class FrameSplitter {
  #rest: Buffer = NOTHING;

  *split(chunk: Buffer): Generator<Frame> {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    // What is given out may be used later, so that nothing is copied into it.
    this.#rest = NOTHING;
    while (rest.length >= HEADER_BYTES) {
      const type = TYPES[rest.readUInt8(0)];
      const length = rest.readUInt32BE(5);
      if (type === undefined) throw new RelayProtocolError("an unknown kind of frame");
      if (length > MAX_PAYLOAD_BYTES) throw new RelayProtocolError("a frame that is too long");
      const end = HEADER_BYTES + length;
      if (rest.length < end) break;
      yield { type, channel: rest.readUInt32BE(1), payload: rest.subarray(HEADER_BYTES, end) };
      rest = rest.subarray(end);
    }
    this.#rest = rest;
  }
}
