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

/** Removes what servers that are dead left behind, according to their records; returns the ids of the removed instances. */
export async function reapDeadServers(options: ReaperOptions): Promise<string[]> {
  const { records, logger } = options;
  const removed: string[] = [];
  for (const instance of await records.instances()) {
    if (isAlive(instance.owner)) continue;
    if (!(await orLogged(options, instance.id, () => reapInstance(options, instance)))) continue;
    removed.push(instance.id);
    logger.info("removed a sandbox of a server that is gone", { cell: instance.id, server: instance.serverId });
  }
  for (const server of await records.servers()) {
    if (!isAlive(server.owner)) await orLogged(options, server.serverId, () => reapServer(options, server));
  }
  await records.sweep();
  return removed;
}

/** A failure for one record must stop neither the removal of the others nor the start of this server. */
async function orLogged({ logger }: ReaperOptions, id: string, reap: () => Promise<boolean>): Promise<boolean> {
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
  // It is killed with its server; here both may still be exiting.
  if (instance.init !== undefined && isAlive(instance.init)) tryKill(instance.init.pid);
  if (!(await endGroups(instance.groups.filter(isOurGroup)))) {
    logger.error("a process of a sandbox of a dead server does not end", { cell: instance.id });
    return false;
  }
  const isOurs = isBelow(dataFolder, instance.folder);
  if (isOurs && !(await waitUntilDetached(instance.folder))) {
    logger.error("a disk of a sandbox of a dead server is still in use", { cell: instance.id });
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

/** Checked although the records are in the server's own folder: only processes in groups of this name are killed. */
function isOurGroup(folder: string): boolean {
  return folder.startsWith("/sys/fs/cgroup/") && /\/owlclaw-[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)?$/.test(folder);
}
