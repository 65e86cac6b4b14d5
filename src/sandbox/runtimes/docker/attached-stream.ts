import { type Duplex, PassThrough, Writable } from "node:stream";
import { GuestStream } from "../guest-stream.ts";
import { EGRESS_RELAY } from "../instance-mounts.ts";
import { createdSchema } from "./engine-client.ts";
import type { DockerHost } from "./docker-host.ts";

const HEADER_BYTES = 8;
const STDERR = 2;
/** Small: a guest may write single bytes, and a chunk of one byte takes hundreds of bytes of memory. */
const BUFFERED_BYTES = 4096;

interface AttachedStream {
  readonly stream: GuestStream;
  readonly diagnostics: PassThrough;
  /** The container has closed its outputs, or the connection to the engine is lost. */
  readonly ended: Promise<void>;
}

/** Splits the stream of an attached container into stdout and stderr: the engine sends a header of eight bytes before each piece. */
export function splitAttached(socket: Duplex): AttachedStream {
  const stdout = new PassThrough({ highWaterMark: BUFFERED_BYTES });
  const diagnostics = new PassThrough({ highWaterMark: BUFFERED_BYTES });
  const splitter = new Splitter(stdout, diagnostics);
  let resolveEnded: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    resolveEnded = resolve;
  });
  const end = (): void => {
    stdout.end();
    diagnostics.end();
    resolveEnded();
  };
  socket.pipe(splitter);
  socket.on("error", end).on("close", end);
  splitter.on("finish", end).on("error", () => socket.destroy());
  // Closing the output closes the connection, and the container's input with it.
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
    // Backpressure: a slow reader slows the container down, and nothing is buffered here.
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

/** A closed stream emits no `drain`. */
function untilDrained(output: PassThrough, done: () => void): void {
  const go = (): void => {
    output.off("drain", go).off("close", go);
    done();
  };
  output.on("drain", go).on("close", go);
}

/** Starts the relay beside the guest; its stdin and stdout carry the sandbox's connections. */
export async function openEgressStream(
  { engine }: DockerHost,
  { containerId, node, signal }: { readonly containerId: string; readonly node: string; readonly signal: AbortSignal },
): Promise<GuestStream> {
  const json = {
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    // The relay must not load the preload that sends programs inside to the proxy.
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
