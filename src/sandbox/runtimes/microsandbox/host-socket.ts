import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";

/** The kernel takes no longer names for sockets. */
const MAX_PATH_BYTES = 103;

export interface HostSocket {
  readonly path: string;
  close(): Promise<void>;
}

export interface GuestSocket extends HostSocket {
  /** The first one who calls: the launcher, before anything else runs in the machine. */
  readonly connected: Promise<Socket>;
}

/** A socket of the host that one machine may call. */
export async function openHostSocket(folder: string, onCall: (socket: Socket) => void): Promise<HostSocket> {
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
