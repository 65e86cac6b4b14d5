import { type Duplex, type Readable, Transform, Writable } from "node:stream";

/** So many bytes at a time the host says that it has taken them. */
export const CREDIT_STEP_BYTES = 16 * 1024;
/** The most that the machine sends ahead of that. */
export const CREDIT_WINDOW_BYTES = 4 * CREDIT_STEP_BYTES;

const HEADER_BYTES = 4;
const CREDIT = Buffer.alloc(HEADER_BYTES);

export interface CreditedStream {
  readonly input: Writable;
  readonly output: Readable;
}

/**
 * Takes one direction of a machine's socket apart into data and credits. The line out of a machine is never told that
 * what it sent was taken, unless something comes back: after a quarter of a megabyte it would stand still for ever.
 * To the machine: the length in four bytes before each piece, and no length at all for another step of credit.
 */
export function creditedStream(socket: Duplex): CreditedStream {
  let owedBytes = 0;
  const output = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      owedBytes += chunk.length;
      for (; owedBytes >= CREDIT_STEP_BYTES; owedBytes -= CREDIT_STEP_BYTES) if (socket.writable) socket.write(CREDIT);
      done(null, chunk);
    },
  });
  const input = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      if (chunk.length === 0) return done();
      const header = Buffer.alloc(HEADER_BYTES);
      header.writeUInt32BE(chunk.length);
      // A line that broke is told by the end of the output.
      socket.write(Buffer.concat([header, chunk]), () => done());
    },
    final: (done) => void socket.end(() => done()),
  });
  socket.on("error", () => output.end()).on("close", () => output.end());
  output.on("close", () => socket.destroy());
  socket.pipe(output);
  return { input, output };
}
