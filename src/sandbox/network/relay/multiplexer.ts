import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { Channel } from "./channel.ts";
import { RelayProtocolError, encodeFrame, type Frame, FrameSplitter } from "./frames.ts";

/** More connections at once are turned away; the door has a lower limit of its own. */
const MAX_CHANNELS = 256;
/** Whoever sends and never reads would make the answers pile up here. */
const MAX_UNSENT_BYTES = 32 * 1024 * 1024;
/** What the other side may make this one do at once, and then in a second; more waits, and with it the other side. */
const BURST_COST = 64 * 1024 * 1024;
const COST_PER_SECOND = 256 * 1024 * 1024;
const FRAME_COST = 4096;

export interface MultiplexerOptions {
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
