import type { Logger } from "../../../telemetry/logger.ts";
import { isBelow } from "../start-request.ts";
import type { CellFolders } from "./cell-folders.ts";
import { endGroups, endServerGroups, tryKill } from "./end-groups.ts";
import type { GuestCopies } from "./guest-copy.ts";
import { waitUntilDetached } from "./loop-devices.ts";
import { isAlive } from "../../../platform/process-identity.ts";
import type { CellRecord, Records, ServerRecord } from "./records.ts";
import { readUid, type UidRange } from "./uid-range.ts";

export interface ReaperOptions {
  readonly records: Records;
  readonly folders: CellFolders;
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
  for (const cell of await records.cells()) {
    if (isAlive(cell.owner)) continue;
    if (!(await orLeft(options, cell.id, () => reapCell(options, cell)))) continue;
    removed.push(cell.id);
    logger.info("removed a sandbox of a server that is gone", { cell: cell.id, server: cell.serverId });
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

async function reapCell(options: ReaperOptions, cell: CellRecord): Promise<boolean> {
  const { records, folders, uids, dataFolder, keepsWorkspaces, logger } = options;
  // It dies with its server; this is for the moment in which both are still dying.
  if (cell.init !== undefined && isAlive(cell.init)) tryKill(cell.init.pid);
  if (!(await endGroups(cell.groups.filter(isOurGroup)))) {
    logger.error("a process of a sandbox of a dead server does not end", { cell: cell.id });
    return false;
  }
  const isOurs = isBelow(dataFolder, cell.folder);
  if (isOurs && !(await waitUntilDetached(cell.folder))) {
    logger.error("a disk of a sandbox of a dead server is still in use", { cell: cell.id });
    return false;
  }
  if (!keepsWorkspaces && isOurs) {
    const uid = await readUid(cell.folder);
    return await folders.remove(cell.folder, async () => {
      if (uid !== undefined) await uids?.release(uid);
      await records.removeCell(cell.id);
    });
  }
  await records.removeCell(cell.id);
  return true;
}

/** Records lie in our own folder, and still: nothing but a group with our name is ever ended. */
function isOurGroup(folder: string): boolean {
  return folder.startsWith("/sys/fs/cgroup/") && /\/owlclaw-[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)?$/.test(folder);
}
