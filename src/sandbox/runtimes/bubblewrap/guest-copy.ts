import { chmod, cp, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";

const SERVER_ID = /^[A-Za-z0-9_-]{1,200}$/;

/** Each server copies the guest at its start: an update of the installation must not change running sandboxes. */
export interface GuestCopies {
  /** Copies the guest for a server; returns the copy's folder. */
  make(serverId: string, source: string): Promise<string>;
  remove(serverId: string): Promise<void>;
}

export function createGuestCopies(folder: string): GuestCopies {
  const folderOf = (serverId: string): string => {
    if (!SERVER_ID.test(serverId)) throw new RangeError(`not an id of a server: ${JSON.stringify(serverId)}`);
    return join(folder, serverId);
  };
  return {
    make: async (serverId, source) => {
      const target = folderOf(serverId);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      try {
        await cp(source, target, { recursive: true, dereference: true });
        await openToAll(target);
      } catch (error) {
        await rm(target, { recursive: true, force: true });
        throw new OwlError("sandbox_unavailable", `the guest in ${source} cannot be copied: ${String(error)}`, {
          hint: "Install OwlClaw again, or run `npm run build` in a checkout.",
          cause: error,
        });
      }
      return target;
    },
    remove: async (serverId) => await rm(folderOf(serverId), { recursive: true, force: true }),
  };
}

/** The users of sandboxes must be able to read it, whatever permissions the installation has. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  }
}
