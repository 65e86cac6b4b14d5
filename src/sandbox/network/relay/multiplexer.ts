import { type Socket, connect } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

/** More connections at once are turned away; the door has a lower limit of its own. */
const MAX_CHANNELS = 256;
/** Whoever sends and never reads would make the answers pile up here. */
const MAX_UNSENT_BYTES = 32 * 1024 * 1024;
/** What the other side may make this one do at once, and then in a second; more waits, and with it the other side. */
const BURST_COST = 64 * 1024 * 1024;
const COST_PER_SECOND = 256 * 1024 * 1024;
const FRAME_COST = 4096;
/** So much may be on its way in each direction of one connection before the other side has passed it on. */
const WINDOW_BYTES = 256 * 1024;
/** Nothing larger is ever sent; whoever announces more is not one of us. */
const MAX_PAYLOAD_BYTES: number = 64 * 1024;
const HEADER_BYTES = 9;
const TYPES = ["hello", "open", "data", "end", "reset", "credit"] as const;
const NOTHING = Buffer.alloc(0);

interface MultiplexerOptions {
  readonly stream: Duplex;
  /** Called for each connection that the other side opens; absent: it may not. */
  readonly onOpen?: () => Socket;
  readonly onHello?: () => void;
}

/** Many connections over one stream. What comes is bounded in size, number and pace, whoever sends it. */
export class RelayMultiplexer {
  readonly #options: MultiplexerOptions;
  readonly #channels = new Map<number, Channel>();
  readonly #splitter = new FrameSplitter();
  #lastId = 0;
  #isFull = false;
  #credit = BURST_COST;
  #creditAtMs = performance.now();

  constructor(options: MultiplexerOptions) {
    this.#options = options;
    options.stream.on("drain", () => this.#hold(false));
    // Its end is seen by whoever reads.
    options.stream.on("error", () => undefined);
  }

  /** Reads until the stream ends, and says why it did. */
  async run(): Promise<string> {
    const { stream } = this.#options;
    try {
      for await (const chunk of stream) {
        if (Buffer.isBuffer(chunk)) await this.#take(chunk);
      }
      return "the line of the network ended";
    } catch (error) {
      return error instanceof RelayProtocolError ? error.message : "the line of the network broke";
    } finally {
      stream.destroy();
      for (const channel of this.#channels.values()) channel.close();
    }
  }

  hello(): void {
    this.#send(encodeFrame("hello", 0));
  }

  /** A connection that came on this side. */
  open(socket: Socket): void {
    this.#lastId += 1;
    this.#send(encodeFrame("open", this.#lastId));
    this.#add(this.#lastId, socket);
  }

  async #take(chunk: Buffer): Promise<void> {
    let frames = 0;
    for (const frame of this.#splitter.split(chunk)) {
      frames += 1;
      this.#receive(frame);
    }
    await this.#pace(chunk.length + frames * FRAME_COST);
  }

  #receive(frame: Frame): void {
    if (frame.type === "hello") return this.#options.onHello?.();
    if (frame.type === "open") return this.#accept(frame.channel);
    const channel = this.#channels.get(frame.channel);
    if (channel !== undefined) return channel.receive(frame);
    // What was on its way when the connection ended is late, and no harm.
    if (frame.channel > this.#lastId) throw new RelayProtocolError("bytes for a connection that never was");
  }

  #accept(id: number): void {
    const { onOpen } = this.#options;
    if (onOpen === undefined || id <= this.#lastId) throw new RelayProtocolError("a connection that cannot be opened");
    this.#lastId = id;
    if (this.#channels.size >= MAX_CHANNELS) this.#send(encodeFrame("reset", id));
    else this.#add(id, onOpen());
  }

  #add(id: number, socket: Socket): void {
    const onClosed = (): void => void this.#channels.delete(id);
    const channel = new Channel({ id, socket, send: (frame) => this.#send(frame), onClosed });
    this.#channels.set(id, channel);
    if (this.#isFull) channel.hold(true);
  }

  #send(frame: Buffer): void {
    const { stream } = this.#options;
    if (stream.destroyed || stream.writableEnded) return;
    if (stream.writableLength > MAX_UNSENT_BYTES) {
      stream.destroy(new RelayProtocolError("nobody reads it"));
    } else if (!stream.write(frame) && !this.#isFull) {
      this.#hold(true);
    }
  }

  #hold(isFull: boolean): void {
    this.#isFull = isFull;
    for (const channel of this.#channels.values()) channel.hold(isFull);
  }

  async #pace(cost: number): Promise<void> {
    const now = performance.now();
    this.#credit = Math.min(BURST_COST, this.#credit + ((now - this.#creditAtMs) / 1000) * COST_PER_SECOND) - cost;
    this.#creditAtMs = now;
    if (this.#credit < 0) await delay((-this.#credit / COST_PER_SECOND) * 1000);
  }
}

interface ChannelOptions {
  readonly id: number;
  /** Half open: each direction ends by itself. */
  readonly socket: Socket;
  readonly send: (frame: Buffer) => void;
  readonly onClosed: () => void;
}

/** One connection that is carried over the line: bytes of its socket become frames, and frames bytes. */
class Channel {
  readonly #options: ChannelOptions;
  #maySendBytes = WINDOW_BYTES;
  #unpassedBytes = 0;
  #owedBytes = 0;
  #isHeld = false;
  #isOver = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
    const { id, socket, send } = options;
    socket.on("data", (chunk: Buffer) => this.#sendData(chunk));
    socket.on("end", () => send(encodeFrame("end", id)));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#finish());
  }

  /** While the line is full, nothing more is read here. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    this.#flow();
  }

  receive(frame: Frame): void {
    const { socket } = this.#options;
    switch (frame.type) {
      case "data":
        return this.#passOn(frame.payload);
      case "end":
        return void socket.end();
      case "credit":
        this.#maySendBytes += creditOf(frame);
        if (this.#maySendBytes > WINDOW_BYTES) throw new RelayProtocolError("more credit than there can be");
        return this.#flow();
      case "reset":
        this.#isOver = true;
        return void socket.destroy();
      case "hello":
      case "open":
        throw new RelayProtocolError(`${frame.type} in a connection`);
    }
  }

  close(): void {
    this.#isOver = true;
    this.#options.socket.destroy();
  }

  #sendData(chunk: Buffer): void {
    const { id, send } = this.#options;
    for (let from = 0; from < chunk.length; from += MAX_PAYLOAD_BYTES) {
      send(encodeFrame("data", id, chunk.subarray(from, from + MAX_PAYLOAD_BYTES)));
    }
    this.#maySendBytes -= chunk.length;
    this.#flow();
  }

  #flow(): void {
    const { socket } = this.#options;
    if (this.#isHeld || this.#maySendBytes <= 0) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }

  #passOn(payload: Buffer): void {
    const { id, socket, send } = this.#options;
    this.#unpassedBytes += payload.length;
    // One read may go past the end of the window.
    if (this.#unpassedBytes > WINDOW_BYTES + MAX_PAYLOAD_BYTES)
      throw new RelayProtocolError("more bytes than there is credit for");
    socket.write(payload, () => {
      this.#unpassedBytes -= payload.length;
      this.#owedBytes += payload.length;
      if (this.#owedBytes < WINDOW_BYTES / 2 || this.#isOver) return;
      send(encodeCredit(id, this.#owedBytes));
      this.#owedBytes = 0;
    });
  }

  #finish(): void {
    if (!this.#isOver) this.#options.send(encodeFrame("reset", this.#options.id));
    this.#isOver = true;
    this.#options.onClosed();
  }
}

/**
 * `hello`: the inside listens. `open`: a new connection; only the inside says so, each time with a higher number. `end`: no more
 * bytes this way. `reset`: the connection is over. `credit`: so many bytes were passed on, and as many more may come.
 */
type FrameType = (typeof TYPES)[number];

interface Frame {
  readonly type: FrameType;
  readonly channel: number;
  readonly payload: Buffer;
}

/** The other side does not keep to the rules: nothing more is believed of it. */
class RelayProtocolError extends Error {
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

function creditOf({ payload }: Frame): number {
  if (payload.length !== 4) throw new RelayProtocolError("a credit without its number");
  return payload.readUInt32BE(0);
}

/** Takes bytes as they come; never holds more than one frame that is not whole. */
class FrameSplitter {
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

export interface EgressRelay {
  /** The inside listens: programs there can reach the proxy. Never settles when the line ends before. */
  readonly ready: Promise<void>;
  /** Why it is over. */
  readonly ended: Promise<string>;
}

/**
 * Carries a sandbox's connections to its door where the door's socket cannot be mounted, because the sandbox is on another machine
 * or has a kernel of its own. The stream belongs to the sandbox: its door is the only place it leads to.
 */
export function relayEgress(stream: Duplex, socketPath: string): EgressRelay {
  let tell: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const onOpen = () => connect({ path: socketPath, allowHalfOpen: true });
  return { ready, ended: new RelayMultiplexer({ stream, onOpen, onHello: () => tell() }).run() };
}
