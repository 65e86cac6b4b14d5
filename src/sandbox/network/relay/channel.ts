import type { Socket } from "node:net";
import { RelayProtocolError, creditOf, encodeCredit, encodeFrame, type Frame, MAX_PAYLOAD_BYTES } from "./frames.ts";

/** So much may be on its way in each direction of one connection before the other side has passed it on. */
const WINDOW_BYTES = 256 * 1024;

export interface ChannelOptions {
  readonly id: number;
  /** Half open: each direction ends by itself. */
  readonly socket: Socket;
  readonly send: (frame: Buffer) => void;
  readonly onClosed: () => void;
}

/** One connection that is carried over the line: bytes of its socket become frames, and frames bytes. */
export class Channel {
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
