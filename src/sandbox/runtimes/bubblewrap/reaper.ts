import type { Logger } from "../../../telemetry/logger.ts";
import { isBelow } from "../start-request.ts";
import type { InstanceFolders } from "./instance-folders.ts";
import { endGroups, endServerGroups, tryKill } from "./cgroups/limited-groups.ts";
import type { GuestCopies } from "./guest-copy.ts";
import { waitUntilDetached } from "./disk-image.ts";
import { isAlive } from "../../../platform/process-identity.ts";
import type { InstanceRecord, Records, ServerRecord } from "./records.ts";
import { readUid, type UidRange } from "./uid-range.ts";

interface ReaperOptions {
  readonly records: Records;
  readonly folders: InstanceFolders;
  readonly guestCopies: GuestCopies;
  readonly uids: UidRange | undefined;
  readonly dataFolder: string;
  readonly keepsWorkspaces: boolean;
  readonly logger: Logger;
}

/** Clears up after servers whose process is gone, by what they wrote down; returns the ids of the cells that were left. */
export async function reapDeadServers(options: ReaperOptions): Promise<string[]> {
  const { records, logger } = options;
  const removed: string[] = [];
  for (const instance of await records.instances()) {
    if (isAlive(instance.owner)) continue;
    if (!(await orLeft(options, instance.id, () => reapInstance(options, instance)))) continue;
    removed.push(instance.id);
    logger.info("removed a sandbox of a server that is gone", { instance: instance.id, server: instance.serverId });
  }
  for (const server of await records.servers()) {
    if (!isAlive(server.owner)) await orLeft(options, server.serverId, () => reapServer(options, server));
  }
  await records.sweep();
  return removed;
}

/** What one of them left in a state of its own must not keep the others, or this server, from starting. */
async function orLeft({ logger }: ReaperOptions, id: string, reap: () => Promise<boolean>): Promise<boolean> {
  try {
    return await reap();
  } catch (error) {
    logger.error("what a dead server left could not be removed; the next start tries again", { id, error });
    return false;
  }
}

async function reapServer({ records, guestCopies }: ReaperOptions, server: ServerRecord): Promise<boolean> {
  if (!(await endServerGroups(server.groups.filter(isOurGroup)))) return false;
  await guestCopies.remove(server.serverId);
  await records.removeServer(server.serverId);
  return true;
}

async function reapInstance(options: ReaperOptions, instance: InstanceRecord): Promise<boolean> {
  const { records, folders, uids, dataFolder, keepsWorkspaces, logger } = options;
  // It dies with its server; this is for the moment in which both are still dying.
  if (instance.init !== undefined && isAlive(instance.init)) tryKill(instance.init.pid);
  if (!(await endGroups(instance.groups.filter(isOurGroup)))) {
    logger.error("a process of a sandbox of a dead server does not end", { instance: instance.id });
    return false;
  }
  const isOurs = isBelow(dataFolder, instance.folder);
  if (isOurs && !(await waitUntilDetached(instance.folder))) {
    logger.error("a disk of a sandbox of a dead server is still in use", { instance: instance.id });
    return false;
  }
  if (!keepsWorkspaces && isOurs) {
    const uid = await readUid(instance.folder);
    return await folders.remove(instance.folder, async () => {
      if (uid !== undefined) await uids?.release(uid);
      await records.removeInstance(instance.id);
    });
  }
  await records.removeInstance(instance.id);
  return true;
}

/** Records lie in our own folder, and still: nothing but a group with our name is ever ended. */
function isOurGroup(folder: string): boolean {
  return folder.startsWith("/sys/fs/cgroup/") && /\/owlclaw-[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)?$/.test(folder);
}
