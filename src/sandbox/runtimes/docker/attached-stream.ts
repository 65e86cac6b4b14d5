import { type Duplex, PassThrough, Writable } from "node:stream";
import { GuestStream } from "../guest-stream.ts";
import { EGRESS_RELAY } from "../instance-mounts.ts";
import { createdSchema } from "./engine-client.ts";
import type { DockerHost } from "./docker-host.ts";

const HEADER_BYTES = 8;
const STDERR = 2;
/** Pieces are counted by their bytes, and one of a single byte takes hundreds: a guest may write that way. */
const BUFFERED_BYTES = 4096;

interface AttachedStream {
  readonly stream: GuestStream;
  readonly diagnostics: PassThrough;
  /** The container said its last, or the engine is gone. */
  readonly ended: Promise<void>;
}

/** Takes the two outputs of a container apart that the engine sends as one: a header of eight bytes before each piece. */
export function splitAttached(socket: Duplex): AttachedStream {
  const stdout = new PassThrough({ highWaterMark: BUFFERED_BYTES });
  const diagnostics = new PassThrough({ highWaterMark: BUFFERED_BYTES });
  const splitter = new Splitter(stdout, diagnostics);
  let tell: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const end = (): void => {
    stdout.end();
    diagnostics.end();
    tell();
  };
  socket.pipe(splitter);
  socket.on("error", end).on("close", end);
  splitter.on("finish", end).on("error", () => socket.destroy());
  // Whoever stops listening ends the line; the container's input ends with it.
  stdout.on("close", () => socket.destroy());
  return { stream: new GuestStream(socket, stdout), diagnostics, ended };
}

class Splitter extends Writable {
  readonly #outputs: readonly [PassThrough, PassThrough];
  #header = Buffer.alloc(0);
  #left = 0;
  #output: PassThrough;

  constructor(stdout: PassThrough, stderr: PassThrough) {
    super();
    this.#outputs = [stdout, stderr];
    this.#output = stdout;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    let rest = chunk;
    let isFull = false;
    while (rest.length > 0) {
      if (this.#left === 0) {
        rest = this.#readHeader(rest);
        continue;
      }
      const piece = rest.subarray(0, this.#left);
      rest = rest.subarray(piece.length);
      this.#left -= piece.length;
      if (!this.#output.write(piece)) isFull = true;
    }
    // A reader that is slow slows the container down, and nothing piles up here.
    if (isFull && this.#output.writableNeedDrain) untilDrained(this.#output, done);
    else done();
  }

  #readHeader(chunk: Buffer): Buffer {
    const missing = HEADER_BYTES - this.#header.length;
    this.#header = Buffer.concat([this.#header, chunk.subarray(0, missing)]);
    if (this.#header.length === HEADER_BYTES) {
      const [stdout, stderr] = this.#outputs;
      this.#output = this.#header[0] === STDERR ? stderr : stdout;
      this.#left = this.#header.readUInt32BE(4);
      this.#header = Buffer.alloc(0);
    }
    return chunk.subarray(missing);
  }
}

/** One that was closed will not be drained any more. */
function untilDrained(output: PassThrough, done: () => void): void {
  const go = (): void => {
    output.off("drain", go).off("close", go);
    done();
  };
  output.on("drain", go).on("close", go);
}

/** Starts the relay beside the guest; its input and output carry the sandbox's connections. */
export async function openEgressStream(
  { engine }: DockerHost,
  { containerId, node, signal }: { readonly containerId: string; readonly node: string; readonly signal: AbortSignal },
): Promise<GuestStream> {
  const json = {
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    // What programs inside are told about the proxy is not for the relay itself.
    Env: ["NODE_OPTIONS="],
    Cmd: [node, ...EGRESS_RELAY],
  };
  const made = await engine.call({ method: "POST", path: `/containers/${containerId}/exec`, json });
  const path = `/exec/${createdSchema.parse(made.json).Id}/start`;
  const { stream, diagnostics } = splitAttached(
    await engine.hijack({ path, json: { Detach: false, Tty: false }, signal }),
  );
  diagnostics.resume();
  return stream;
}
