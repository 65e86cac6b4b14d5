import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm } from "node:fs/promises";
import { createServer, type Socket, connect } from "node:net";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import { type Duplex, type Readable, Transform, Writable, pipeline } from "node:stream";

/** The kernel takes no longer names for sockets. */
const MAX_PATH_BYTES = 103;
/** So many bytes at a time the host says that it has taken them. */
export const CREDIT_STEP_BYTES = 16 * 1024;
/** The most that the machine sends ahead of that. */
export const CREDIT_WINDOW_BYTES = 4 * CREDIT_STEP_BYTES;
const HEADER_BYTES = 4;
const CREDIT = Buffer.alloc(HEADER_BYTES);

interface HostSocket {
  readonly path: string;
  close(): Promise<void>;
}

export interface GuestSocket extends HostSocket {
  /** The first one who calls: the launcher, before anything else runs in the machine. */
  readonly connected: Promise<Socket>;
}

/** A socket of the host that one machine may call. */
async function openHostSocket(folder: string, onCall: (socket: Socket) => void): Promise<HostSocket> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, randomBytes(6).toString("hex"));
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw new OwlError("sandbox_unavailable", `the data folder's name is too long for sockets in it: ${folder}`, {
      hint: "Set sandbox.root (SANDBOX_ROOT) to a shorter path.",
    });
  }
  const calls = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    calls.add(socket.on("close", () => calls.delete(socket)));
    onCall(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(path, resolve);
  });
  await chmod(path, 0o600);
  return {
    path,
    close: async () => {
      server.close();
      for (const socket of calls) socket.destroy();
      await rm(path, { force: true });
    },
  };
}

/** One that takes a single call: the first that says something. Its first byte says nothing else. */
export async function openGuestSocket(folder: string): Promise<GuestSocket> {
  let take: (socket: Socket) => void = () => undefined;
  const connected = new Promise<Socket>((resolve) => {
    take = resolve;
  });
  let isTaken = false;
  const line = await openHostSocket(folder, (socket) => {
    // Whoever gives up before the first byte, as a launcher on a busy machine does, may call again.
    socket
      .on("error", () => socket.destroy())
      .once("data", (first: Buffer) => {
        if (isTaken) return void socket.destroy();
        isTaken = true;
        socket.pause();
        if (first.length > 1) socket.unshift(first.subarray(1));
        take(socket);
      });
  });
  return { ...line, connected };
}

interface CreditedStream {
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

/** What leaves a machine for the egress proxy; the proxy itself decides about each call. */
export async function openEgressBridge(folder: string, egressSocket: string): Promise<HostSocket> {
  return await openHostSocket(folder, (socket) => {
    const { input, output } = creditedStream(socket);
    const proxy = connect({ path: egressSocket, allowHalfOpen: true });
    // Either end may go away at any time: the other one then hears it.
    pipeline(output, proxy, (error) => {
      if (error !== null && error !== undefined) proxy.destroy();
    });
    pipeline(proxy, input, (error) => {
      if (error !== null && error !== undefined) socket.destroy();
    });
  });
}
