import { setTimeout as delay } from "node:timers/promises";
import { containersSchema, volumesSchema } from "./engine-client.ts";
import type { DockerHost } from "./docker-host.ts";
import { EngineError, isUnreachable } from "./engine-failure.ts";
import { type ContainerHost, removeContainer } from "./containers.ts";
import { isOrphan, LABELS } from "./ownership.ts";

/** Names of the containers through which volumes are filled. */
const FILLING = /^\/?owlclaw-(?:guest|node)-[0-9a-f]{16}-fill$/;
const VOLUME_TIMEOUT_MS = 10_000;
const VOLUME_PAUSE_MS = 100;
const FIRST_PAUSE_MS = 2000;
const MAX_PAUSE_MS = 60_000;
/** A server that stops waits no longer than this for the engine: the next server removes the rest. */
const LAST_TRY_MS = 5000;

export type CleanupHost = ContainerHost & Pick<DockerHost, "prepared" | "leftVolumes">;

interface Found {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Removes containers and workspaces of dead servers of this data folder; returns the ids of their instances. */
export async function reapDeadServers(host: DockerHost, keepsWorkspaces: boolean): Promise<string[]> {
  const removed = new Set<string>();
  for (const { id, labels } of (await containersOf(host)).filter((each) => isOrphan(each.labels))) {
    await removeContainer(host, id);
    removed.add(labels[LABELS.instance] ?? id);
  }
  if (keepsWorkspaces) return [...removed];
  for (const { id, labels } of (await workspacesOf(host)).filter((each) => isOrphan(each.labels))) {
    await discardVolume(host, id);
    removed.add(labels[LABELS.instance] ?? id);
  }
  return [...removed];
}

/** Removes this server's containers that are not in `own`: the answer that had their id was lost. */
export async function removeStrays(host: CleanupHost): Promise<void> {
  host.doubt.isThere = false;
  const found = await containersOf(host);
  // The engine may list a container before it has answered the request that made it.
  await Promise.allSettled(host.making);
  const strays = found.filter(
    ({ id, labels }) => labels[LABELS.server] === host.ownership.serverId && !host.own.has(id),
  );
  for (const { id } of strays) await removeContainer(host, id);
  await removeLeftovers(host);
}

/** Containers first: a volume cannot be removed while a container uses it. */
async function removeLeftovers(host: CleanupHost): Promise<void> {
  for (const id of host.leftovers) await removeContainer(host, id);
  for (const name of host.leftVolumes) await discardVolume(host, name);
}

/** Removes a workspace, now or, when that fails, at a later try; returns whether it is gone. */
export async function discardVolume(host: CleanupHost, name: string): Promise<boolean> {
  host.prepared.delete(name);
  try {
    await removeVolume(host, name);
    host.leftVolumes.delete(name);
    return true;
  } catch (error) {
    const log = isUnreachable(error) ? "warning" : "error";
    const isNew = !host.leftVolumes.has(name);
    host.leftVolumes.add(name);
    if (isNew) host.logger[log]("a workspace is left until the engine can remove it", { volume: name, error });
    return false;
  }
}

async function removeVolume({ engine }: CleanupHost, name: string): Promise<void> {
  for (const deadline = Date.now() + VOLUME_TIMEOUT_MS; ; await delay(VOLUME_PAUSE_MS)) {
    // 409: the removal of the container that used it has not finished.
    const { status } = await engine.call({ method: "DELETE", path: `/volumes/${name}`, accept: [404, 409] });
    if (status !== 409) return;
    if (Date.now() > deadline) throw new EngineError(status, `the volume ${name} is still in use`);
  }
}

async function containersOf({ engine, ownership }: CleanupHost): Promise<Found[]> {
  const filters = JSON.stringify({ label: [`${LABELS.data}=${ownership.dataId}`] });
  const { json } = await engine.call({ method: "GET", path: "/containers/json", query: { all: "1", filters } });
  return containersSchema
    .parse(json)
    .filter(({ Names: names }) => names.some((name) => ownership.isContainerName(name) || FILLING.test(name)))
    .map(({ Id: id, Labels: labels }) => ({ id, labels }));
}

async function workspacesOf({ engine, ownership }: DockerHost): Promise<Found[]> {
  const filters = JSON.stringify({ label: [`${LABELS.data}=${ownership.dataId}`] });
  const { json } = await engine.call({ method: "GET", path: "/volumes", query: { filters } });
  return volumesSchema.parse(json).Volumes.map(({ Name: id, Labels: labels }) => ({ id, labels }));
}

/** Retries failed removals with growing pauses. */
export class PendingRemovals {
  readonly #host: DockerHost;
  #pauseMs = FIRST_PAUSE_MS;
  #nextAtMs = 0;
  #trying: Promise<void> | undefined;

  constructor(host: DockerHost) {
    this.#host = host;
  }

  /** Does not wait: a slow removal must not look like a lost engine. */
  tryAgain(): void {
    if (this.#isEmpty) this.#pauseMs = FIRST_PAUSE_MS;
    else if (performance.now() >= this.#nextAtMs) void this.#try();
  }

  async tryForTheLastTime(): Promise<void> {
    const finished = (async () => {
      await this.#trying;
      if (!this.#isEmpty) await this.#try();
    })();
    await Promise.race([finished, delay(LAST_TRY_MS, undefined, { ref: false })]);
  }

  get #isEmpty(): boolean {
    return this.#host.leftovers.size === 0 && this.#host.leftVolumes.size === 0;
  }

  #try(): Promise<void> {
    this.#trying ??= removeLeftovers(this.#host).finally(() => {
      this.#trying = undefined;
      this.#nextAtMs = performance.now() + this.#pauseMs;
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    });
    return this.#trying;
  }
}
