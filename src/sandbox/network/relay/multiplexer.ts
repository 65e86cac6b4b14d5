import { type Socket, connect } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

/** More concurrent connections are reset; the egress listener has a lower limit. */
const MAX_CHANNELS = 256;
/** Buffered bytes for a peer that does not read. Above it the stream is destroyed. */
const MAX_UNSENT_BYTES = 32 * 1024 * 1024;
/** Rate limit: the peer may cause this much work at once, and then so much a second. More waits, and the peer with it. */
const BURST_COST = 64 * 1024 * 1024;
const COST_PER_SECOND = 256 * 1024 * 1024;
const FRAME_COST = 4096;
/** Bytes in flight in each direction of one connection. */
const WINDOW_BYTES = 256 * 1024;
/** The largest payload that is sent; a larger one violates the protocol. */
const MAX_PAYLOAD_BYTES: number = 64 * 1024;
const HEADER_BYTES = 9;
const TYPES = ["hello", "open", "data", "end", "reset", "credit"] as const;
const NOTHING = Buffer.alloc(0);

interface MultiplexerOptions {
  readonly stream: Duplex;
  /** Called for each connection that the peer opens; absent: the peer may open none. */
  readonly onOpen?: () => Socket;
  readonly onHello?: () => void;
}

/** Carries many connections over one stream. Frames of the peer are limited in size, number and rate. */
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
    // `run` sees the end of the stream.
    options.stream.on("error", () => undefined);
  }

  /** Reads until the stream ends. Resolves with the reason. */
  async run(): Promise<string> {
    const { stream } = this.#options;
    try {
      for await (const chunk of stream) {
        if (Buffer.isBuffer(chunk)) await this.#take(chunk);
      }
      return "the network stream ended";
    } catch (error) {
      return error instanceof RelayProtocolError ? error.message : "the network stream broke";
    } finally {
      stream.destroy();
      for (const channel of this.#channels.values()) channel.close();
    }
  }

  hello(): void {
    this.#send(encodeFrame("hello", 0));
  }

  /** Carries a connection that was accepted on this side. */
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
    // Frames of a closed connection may still be in flight.
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
      stream.destroy(new RelayProtocolError("the peer does not read"));
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
  /** Must allow half-open connections. */
  readonly socket: Socket;
  readonly send: (frame: Buffer) => void;
  readonly onClosed: () => void;
}

/** One connection of the multiplexer: it turns bytes of a socket into frames, and frames into bytes. */
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

  /** Backpressure: stops reading the socket while the stream is full. */
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
    // One read may exceed the window.
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
 * `hello`: the inside listens. `open`: a new connection, which only the inside opens, with increasing ids. `end`: this side sends no
 * more bytes. `reset`: the connection is closed. `credit`: this many bytes were written, and as many more may be sent.
 */
type FrameType = (typeof TYPES)[number];

interface Frame {
  readonly type: FrameType;
  readonly channel: number;
  readonly payload: Buffer;
}

/** The peer has violated the protocol. */
class RelayProtocolError extends Error {
  constructor(reason: string) {
    super(`the network stream is malformed: ${reason}`);
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

/** Splits bytes into frames. It buffers at most one incomplete frame. */
class FrameSplitter {
  #rest: Buffer = NOTHING;

  *split(chunk: Buffer): Generator<Frame> {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    // Payloads may be used later, so the buffer is not reused.
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
  /** Resolves when the relay inside listens. Does not settle when the stream ends before. */
  readonly ready: Promise<void>;
  /** Resolves with the reason when the stream has ended. */
  readonly ended: Promise<string>;
}

/**
 * Carries a sandbox's connections to its egress listener where the listener's socket cannot be mounted, because the sandbox is on
 * another machine. The stream leads only to the listener of this sandbox.
 */
export function relayEgress(stream: Duplex, socketPath: string): EgressRelay {
  let resolveReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    resolveReady = resolve;
  });
  const onOpen = () => connect({ path: socketPath, allowHalfOpen: true });
  return { ready, ended: new RelayMultiplexer({ stream, onOpen, onHello: () => resolveReady() }).run() };
}
