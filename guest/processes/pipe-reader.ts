import { closeSync, readSync } from "node:fs";
import { Socket } from "node:net";
import type { OutputPipe } from "./running-process.ts";

/** What is read into it is copied at once, so that one serves all. */
const CHUNK = Buffer.allocUnsafeSlow(65_536);

/** The reading end of a pipe. Nothing is read before somebody listens. */
export class PipeReader implements OutputPipe {
  readonly #fd: number;
  #socket: Socket | undefined;
  #isClosed = false;
  #held: Buffer[] = [];
  #listener: (chunk: Buffer) => void = () => {};

  constructor(fd: number) {
    this.#fd = fd;
  }

  hold(): void {
    const held: Buffer[] = [];
    this.#held = held;
    this.#listener = (chunk) => void held.push(chunk);
  }

  onData(listener: (chunk: Buffer) => void): void {
    this.#listener = listener;
    for (const chunk of this.#held.splice(0)) listener(chunk);
    if (this.#socket !== undefined || this.#isClosed) return;
    const socket = new Socket({ fd: this.#fd, readable: true, writable: false });
    socket.on("data", (chunk: Buffer) => this.#listener(chunk));
    socket.on("error", () => socket.destroy());
    this.#socket = socket;
  }

  /** Reads beside the event loop: the program's last bytes are in the pipe before the news that it ended is here. */
  drain(): void {
    while (this.#socket?.destroyed === false) {
      const byteCount = this.#read(CHUNK);
      if (byteCount === 0) return;
      this.#listener(Buffer.from(CHUNK.subarray(0, byteCount)));
    }
  }

  /** One that is in use closes itself at its end. */
  closeIfUnused(): void {
    if (this.#socket !== undefined || this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#fd);
  }

  #read(chunk: Buffer): number {
    // Most reads find nothing, and Node says that with an error: without a stack it costs a tenth.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return readSync(this.#fd, chunk, 0, chunk.length, null);
    } catch {
      // EAGAIN: nothing more for now.
      return 0;
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }
}
