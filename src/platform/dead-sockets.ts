import { open, readdir, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { basename, dirname, join } from "node:path";

/** Made by `mkdtemp`; anything else in the folder is not ours. */
const SOCKET_FOLDER = /^d-/;
export const SOCKET_NAME = "s";

/** A folder without its socket may belong to a server that is about to make it; no server takes this long. */
const MAX_START_MS = 60_000;

/** Removes the doors of servers that were killed. Those of living servers answer, and stay. */
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

/** `dead` only when the kernel says that nobody listens: every doubt counts as alive. */
export async function probeSocket(path: string): Promise<"alive" | "dead" | "missing"> {
  // Through a descriptor of the folder: the kernel takes only short paths for sockets.
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
