import type { BubblewrapHost } from "./bubblewrap-host.ts";
import { isBelow } from "../start-request.ts";
import { endGroups, endServerGroups, tryKill } from "./cgroups/limited-groups.ts";
import { waitUntilDetached } from "./disk-image.ts";
import { isAlive } from "../../../platform/process-identity.ts";
import type { InstanceRecord, ServerRecord } from "./records.ts";
import { readUid } from "./uid-range.ts";

/** Removes what servers that are dead left behind, according to their records; returns the ids of the removed instances. */
export async function reapDeadServers(host: BubblewrapHost, keepsWorkspaces: boolean): Promise<string[]> {
  const { records, logger } = host;
  const removed: string[] = [];
  for (const instance of await records.instances()) {
    if (isAlive(instance.owner)) continue;
    if (!(await orLogged(host, instance.id, () => reapInstance(host, instance, keepsWorkspaces)))) continue;
    removed.push(instance.id);
    logger.info("removed a sandbox of a server that is gone", { cell: instance.id, server: instance.serverId });
  }
  for (const server of await records.servers()) {
    if (!isAlive(server.owner)) await orLogged(host, server.serverId, () => reapServer(host, server));
  }
  await records.sweep();
  return removed;
}

/** A failure for one record must stop neither the removal of the others nor the start of this server. */
async function orLogged({ logger }: BubblewrapHost, id: string, reap: () => Promise<boolean>): Promise<boolean> {
  try {
    return await reap();
  } catch (error) {
    logger.error("what a dead server left could not be removed; the next start tries again", { id, error });
    return false;
  }
}

async function reapServer({ records, guestCopies }: BubblewrapHost, server: ServerRecord): Promise<boolean> {
  if (!(await endServerGroups(server.groups.filter(isOurGroup)))) return false;
  await guestCopies.remove(server.serverId);
  await records.removeServer(server.serverId);
  return true;
}

async function reapInstance(
  host: BubblewrapHost,
  instance: InstanceRecord,
  keepsWorkspaces: boolean,
): Promise<boolean> {
  const { records, folders, privileges, dataFolder, logger } = host;
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
      if (uid !== undefined) await privileges?.uids.release(uid);
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
