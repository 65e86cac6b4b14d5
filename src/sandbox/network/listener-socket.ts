import { chmod, chown, mkdir, mkdtemp, open, rename, rm, readdir, stat } from "node:fs/promises";
import { type Server, connect } from "node:net";
import { join, basename, dirname } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";

// The longest path of a unix socket, without the terminating NUL.
const MAX_SOCKET_PATH_BYTES = 107;
// The socket is renamed when it listens: a socket with the final name that refuses connections belongs to a dead server.
const UNBOUND_NAME = "n";
/** Folders made by `mkdtemp`; other entries are ignored. */
const SOCKET_FOLDER = /^d-/;
export const SOCKET_NAME = "s";
/** A folder without its socket may belong to a server that is about to make it. No server takes this long. */
const MAX_START_MS = 60_000;

export interface ListenerSocket {
  readonly path: string;
  /** Removes the socket and its folder. */
  remove(): Promise<void>;
}

/**
 * Listens on a new unix socket to which only `ownerUid` can connect. Each socket has its own folder, which is closed until the
 * socket's owner and mode are set: other users can connect at no time.
 */
export async function listenOnSocket(
  server: Server,
  options: { folder: string; ownerUid: number | undefined },
): Promise<ListenerSocket> {
  const { folder, ownerUid } = options;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const own = await mkdtemp(join(folder, "d-"));
  const path = join(own, SOCKET_NAME);
  const unbound = join(own, UNBOUND_NAME);
  const remove = async (): Promise<void> => await rm(own, { recursive: true, force: true });
  try {
    await listen(server, own);
    await chmod(unbound, 0o600);
    if (ownerUid !== undefined && ownerUid !== process.getuid?.()) {
      await giveTo(ownerUid, { folder, own, path: unbound });
    }
    await rename(unbound, path);
    return { path, remove };
  } catch (cause) {
    server.close();
    await remove();
    throw cause instanceof OwlError
      ? cause
      : new OwlError("internal", "the egress socket could not be made", { cause, facts: { folder } });
  }
}

/** Other users may pass through the folders and cannot list them. */
async function giveTo(uid: number, paths: { folder: string; own: string; path: string }): Promise<void> {
  try {
    await chown(paths.path, uid, uid);
  } catch (cause) {
    throw new OwlError("internal", `the egress socket cannot be given to uid ${uid}`, {
      cause,
      hint: "only root can give a socket to another user: run the sandbox as the server's own user",
    });
  }
  await chmod(paths.folder, 0o711);
  await chmod(paths.own, 0o711);
}

async function listen(server: Server, own: string): Promise<void> {
  const path = join(own, UNBOUND_NAME);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) {
    await listening(server, path);
    return;
  }
  // Through a descriptor of the folder, the path of the folder may have any length.
  const directory = await open(own, "r");
  try {
    await listening(server, `/proc/self/fd/${directory.fd}/${UNBOUND_NAME}`);
  } finally {
    await directory.close();
  }
}

async function listening(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Removes the sockets of servers that were killed. Sockets of live servers accept connections and are kept. */
export async function removeDeadListeners(folder: string): Promise<number> {
  let removed = 0;
  for (const name of await readdir(folder).catch(() => [])) {
    const own = join(folder, name);
    if (!SOCKET_FOLDER.test(name) || !(await isDeadListener(own))) continue;
    await rm(own, { recursive: true, force: true });
    removed += 1;
  }
  return removed;
}

async function isDeadListener(own: string): Promise<boolean> {
  const answer = await probeSocket(join(own, SOCKET_NAME));
  if (answer !== "missing") return answer === "dead";
  const { mtimeMs } = (await stat(own).catch(() => undefined)) ?? { mtimeMs: Date.now() };
  return Date.now() - mtimeMs > MAX_START_MS;
}

/** `dead` only when the kernel refuses the connection. Any other failure counts as alive. */
export async function probeSocket(path: string): Promise<"alive" | "dead" | "missing"> {
  // Through a descriptor of the folder: the path of a socket has a maximum length.
  const folder = await open(dirname(path), "r").catch(() => undefined);
  if (folder === undefined) return "missing";
  try {
    return await new Promise((resolve) => {
      const socket = connect(`/proc/self/fd/${folder.fd}/${basename(path)}`);
      socket.once("connect", () => {
        socket.destroy();
        resolve("alive");
      });
      socket.once("error", (error: NodeJS.ErrnoException) => {
        resolve(error.code === "ECONNREFUSED" ? "dead" : error.code === "ENOENT" ? "missing" : "alive");
      });
    });
  } finally {
    await folder.close();
  }
}
