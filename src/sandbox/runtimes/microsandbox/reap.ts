import { rm } from "node:fs/promises";
import { z } from "zod";
import { isAlive } from "../../../platform/process-identity.ts";
import { isOrphan, LABELS } from "../docker/ownership.ts";
import { removeTree } from "../host-files.ts";
import { isBelow } from "../start-request.ts";
import { destroyMachine } from "./machine-instance.ts";
import { type MachineHost, serverFolders } from "./machine-host.ts";
import type { FoundMachine } from "./sdk.ts";

const PAGE = 100;
const labelsSchema = z.object({ labels: z.record(z.string(), z.string()) });

/** Removes machines and workspaces of dead servers of this data folder; returns the ids of their instances. */
export async function reapDeadServers(host: MachineHost, keepsWorkspaces: boolean): Promise<string[]> {
  const removed = new Set<string>();
  for (const machine of await ownMachines(host)) {
    const labels = labelsOf(machine);
    if (!isOrphan(labels)) continue;
    await destroyMachine(machine);
    removed.add(labels[LABELS.instance] ?? machine.name);
  }
  for (const instance of await host.records.instances()) {
    if (isAlive(instance.owner)) continue;
    if (!keepsWorkspaces && isBelow(host.dataFolder, instance.folder)) {
      try {
        await removeTree(instance.folder);
      } catch (error) {
        host.logger.error("what a dead server left could not be removed; the next start tries again", {
          cell: instance.id,
          error,
        });
        continue;
      }
    }
    await host.records.removeInstance(instance.id);
    removed.add(instance.id);
  }
  for (const { serverId, owner } of await host.records.servers()) {
    if (isAlive(owner)) continue;
    await removeServerFolders(host.stateFolder, serverId);
    await host.records.removeServer(serverId);
  }
  await host.records.sweep();
  return [...removed];
}

/** The server's copy of the guest, and its sockets. */
export async function removeServerFolders(stateFolder: string, serverId: string): Promise<void> {
  const { sockets, guest } = serverFolders(stateFolder, serverId);
  await rm(sockets, { recursive: true, force: true });
  await rm(guest, { recursive: true, force: true });
}

/** Found by label, without machines of other applications and other data folders. */
async function ownMachines({ sdk, ownership }: MachineHost): Promise<FoundMachine[]> {
  const found: FoundMachine[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await sdk.Sandbox.listWith((list) => {
      list.label(LABELS.data, ownership.dataId).limit(PAGE);
      return cursor === undefined ? list : list.cursor(cursor);
    });
    // Checked again here: a machine without the label must never be removed.
    found.push(...page.sandboxes.filter((each) => labelsOf(each)[LABELS.data] === ownership.dataId));
    cursor = page.nextCursor;
    if (cursor === undefined) return found;
  }
}

function labelsOf(machine: FoundMachine): Record<string, string> {
  const parsed = labelsSchema.safeParse(machine.config());
  return parsed.success ? parsed.data.labels : {};
}
