import { setTimeout as delay } from "node:timers/promises";
import { containersSchema, volumesSchema } from "./engine-answers.ts";
import type { DockerHost } from "./docker-host.ts";
import { EngineError, isUnreachable } from "./engine-failure.ts";
import { isOrphan, LABELS } from "./ownership.ts";
import { removeContainer } from "./remove-container.ts";

const VOLUME_TIMEOUT_MS = 10_000;
const VOLUME_PAUSE_MS = 100;

interface Found {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Removes containers and workspaces of servers of this data folder that are gone; returns the ids of their cells. */
export async function reapDeadServers(host: DockerHost, keepsWorkspaces: boolean): Promise<string[]> {
  const removed = new Set<string>();
  for (const { id, labels } of (await containersOf(host)).filter((each) => isOrphan(each.labels))) {
    await removeContainer(host, id);
    removed.add(labels[LABELS.cell] ?? id);
  }
  if (keepsWorkspaces) return [...removed];
  for (const { id, labels } of (await workspacesOf(host)).filter((each) => isOrphan(each.labels))) {
    await discardVolume(host, id);
    removed.add(labels[LABELS.cell] ?? id);
  }
  return [...removed];
}

/** When the engine was away, containers may have outlived what the server knows of them. */
export async function removeStrays(host: DockerHost): Promise<void> {
  for (const id of host.leftovers) await removeContainer(host, id);
  const strays = (await containersOf(host)).filter(
    ({ id, labels }) => labels[LABELS.server] === host.ownership.serverId && !host.own.has(id),
  );
  for (const { id } of strays) await removeContainer(host, id);
  for (const name of host.leftVolumes) await discardVolume(host, name);
}

/** Removes a workspace, now or when the engine is back. */
export async function discardVolume(host: DockerHost, name: string): Promise<void> {
  host.prepared.delete(name);
  try {
    await removeVolume(host, name);
    host.leftVolumes.delete(name);
  } catch (error) {
    host.leftVolumes.add(name);
    if (!isUnreachable(error)) throw error;
  }
}

async function removeVolume({ engine }: DockerHost, name: string): Promise<void> {
  for (const deadline = Date.now() + VOLUME_TIMEOUT_MS; ; await delay(VOLUME_PAUSE_MS)) {
    // 409: the container that used it is not quite gone.
    const { status } = await engine.call({ method: "DELETE", path: `/volumes/${name}`, accept: [404, 409] });
    if (status !== 409) return;
    if (Date.now() > deadline) throw new EngineError(status, `the volume ${name} is still in use`);
  }
}

async function containersOf({ engine, ownership }: DockerHost): Promise<Found[]> {
  const filters = JSON.stringify({ label: [`${LABELS.data}=${ownership.dataId}`] });
  const { json } = await engine.call({ method: "GET", path: "/containers/json", query: { all: "1", filters } });
  return containersSchema.parse(json).map(({ Id: id, Labels: labels }) => ({ id, labels }));
}

async function workspacesOf({ engine, ownership }: DockerHost): Promise<Found[]> {
  const filters = JSON.stringify({ label: [`${LABELS.data}=${ownership.dataId}`] });
  const { json } = await engine.call({ method: "GET", path: "/volumes", query: { filters } });
  return volumesSchema.parse(json).Volumes.map(({ Name: id, Labels: labels }) => ({ id, labels }));
}
