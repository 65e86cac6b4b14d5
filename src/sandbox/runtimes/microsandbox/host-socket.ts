import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm } from "node:fs/promises";
import { createServer, type Socket, connect } from "node:net";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import { type Duplex, type Readable, Transform, Writable, pipeline } from "node:stream";

/** The kernel accepts no longer paths for sockets. */
const MAX_PATH_BYTES = 103;
/** The host sends one credit for this many received bytes. */
export const CREDIT_STEP_BYTES = 16 * 1024;
/** The most that a machine sends before it needs another credit. */
export const CREDIT_WINDOW_BYTES = 4 * CREDIT_STEP_BYTES;
const HEADER_BYTES = 4;
const CREDIT = Buffer.alloc(HEADER_BYTES);

interface HostSocket {
  readonly path: string;
  close(): Promise<void>;
}

export interface GuestSocket extends HostSocket {
  /** The first connection: the launcher connects before anything else runs in the machine. */
  readonly connected: Promise<Socket>;
}

/** A socket of the host to which one machine may connect. */
async function openHostSocket(folder: string, onConnection: (socket: Socket) => void): Promise<HostSocket> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, randomBytes(6).toString("hex"));
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw new OwlError("sandbox_unavailable", `the data folder's name is too long for sockets in it: ${folder}`, {
      hint: "Set sandbox.root (SANDBOX_ROOT) to a shorter path.",
    });
  }
  const connections = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    connections.add(socket.on("close", () => connections.delete(socket)));
    onConnection(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(path, resolve);
  });
  await chmod(path, 0o600);
  return {
    path,
    close: async () => {
      server.close();
      for (const socket of connections) socket.destroy();
      await rm(path, { force: true });
    },
  };
}

/** Accepts a single connection: the first that sends a byte. That byte is not part of the data. */
export async function openGuestSocket(folder: string): Promise<GuestSocket> {
  let accept: (socket: Socket) => void = () => undefined;
  const connected = new Promise<Socket>((resolve) => {
    accept = resolve;
  });
  let isAccepted = false;
  const host = await openHostSocket(folder, (socket) => {
    // A launcher that closes its connection before the first byte, as on a busy machine, may connect again.
    socket
      .on("error", () => socket.destroy())
      .once("data", (first: Buffer) => {
        if (isAccepted) return void socket.destroy();
        isAccepted = true;
        socket.pause();
        if (first.length > 1) socket.unshift(first.subarray(1));
        accept(socket);
      });
  });
  return { ...host, connected };
}

interface CreditedStream {
  readonly input: Writable;
  readonly output: Readable;
}

/**
 * Adds flow control to a machine's socket: the vsock of microsandbox stalls after a quarter of a megabyte unless data comes
 * back. To the machine: each piece has its length in four bytes before it, and a length of zero is a credit. From the machine:
 * data only.
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
      // A failed write shows as the end of the output.
      socket.write(Buffer.concat([header, chunk]), () => done());
    },
    final: (done) => void socket.end(() => done()),
  });
  socket.on("error", () => output.end()).on("close", () => output.end());
  output.on("close", () => socket.destroy());
  socket.pipe(output);
  return { input, output };
}

/** Connects a machine to the egress proxy, which decides on each request. */
export async function openEgressBridge(folder: string, egressSocket: string): Promise<HostSocket> {
  return await openHostSocket(folder, (socket) => {
    const { input, output } = creditedStream(socket);
    const proxy = connect({ path: egressSocket, allowHalfOpen: true });
    // When one end closes, the other is closed too.
    pipeline(output, proxy, (error) => {
      if (error !== null && error !== undefined) proxy.destroy();
    });
    pipeline(proxy, input, (error) => {
      if (error !== null && error !== undefined) socket.destroy();
    });
  });
}
