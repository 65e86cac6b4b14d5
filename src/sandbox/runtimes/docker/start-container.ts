import { chmod, chown } from "node:fs/promises";
import { type InstanceMount, volumeMounts } from "../instance-mounts.ts";
import type { GuestStream } from "../guest-stream.ts";
import type { InstanceSpec } from "../runtime.ts";
import { checkSpec, type StartRequest } from "../start-request.ts";
import { splitAttached, openEgressStream } from "./attached-stream.ts";
import { containerRequest, guestCommand, uidOf } from "./container-request.ts";
import { DockerInstance } from "./docker-instance.ts";
import type { DockerHost } from "./docker-host.ts";
import { volumeSchema } from "./engine-client.ts";
import { EngineError, explainEngineError } from "./engine-failure.ts";
import type { SandboxImage } from "./images.ts";
import { makeContainer, removeContainer } from "./containers.ts";
import { discardVolume } from "./reap.ts";
import { refuseRemoteFolders } from "./engine-facts.ts";
import { packTar } from "./tar-archive.ts";

const ATTACH = { stream: "1", stdin: "1", stdout: "1", stderr: "1" };

/** Makes a container, attaches to its streams and starts it; removes it when that fails. */
export async function startContainer(host: DockerHost, request: StartRequest): Promise<DockerInstance> {
  const { spec, signal } = request;
  checkSpec(spec, host);
  refuseRemoteFolders(host, spec);
  signal.throwIfAborted();
  const name = host.imageOf(spec.template);
  try {
    const image = await host.images.get(name);
    const mounts = await volumeMounts({ ...spec, dataFolder: host.dataFolder, empty: host.empty });
    const uid = uidOf(host, spec, mounts);
    warnOfMappedVolumes(host, { uid, mounts });
    if (spec.egressSocket !== undefined && !host.isRemote) await grantEgressSocket(spec.egressSocket, uid, host.facts);
    const command = request.command ?? spec.program ?? guestCommand(image);
    await makeWorkspace(host, spec, mounts);
    const json = containerRequest(host, { spec, image, mounts, uid, command });
    const id = await makeContainer(host, { json });
    host.logger.info("container created", { container: id.slice(0, 12), sandbox: spec.id, image: name });
    return await orRemoved(host, { id, spec }, async () => {
      signal.throwIfAborted();
      await prepareWorkspace(host, { id, spec, uid, mounts });
      return await attachAndStart(host, { id, spec, mounts, image, signal });
    });
  } catch (error) {
    if (error instanceof EngineError) {
      host.logger.warning("the engine did not start a container", { sandbox: spec.id, image: name, error });
    }
    throw explainEngineError(error, name);
  }
}

/** The server cannot read the mapping, so it cannot tell whether the volume's owner is the user inside. */
function warnOfMappedVolumes(
  { facts, logger }: DockerHost,
  { uid, mounts }: { readonly uid: number; readonly mounts: readonly InstanceMount[] },
): void {
  const volumes = mounts.filter(({ isReadOnly, owner }) => !isReadOnly && owner !== undefined);
  if (!facts.mapsUsers || volumes.length === 0) return;
  logger.warning("the engine maps users: a writable volume has to be writable for its user of this number", {
    uid,
    volumes: volumes.map(({ guestPath }) => guestPath),
  });
}

interface Starting {
  readonly id: string;
  readonly spec: InstanceSpec;
  readonly mounts: readonly InstanceMount[];
}

async function attachAndStart(
  host: DockerHost,
  starting: Starting & { image: SandboxImage; signal: AbortSignal },
): Promise<DockerInstance> {
  const { id, spec, mounts, image, signal } = starting;
  const { engine } = host;
  const socket = await engine.hijack({ path: `/containers/${id}/attach`, query: ATTACH, signal });
  const attached = splitAttached(socket);
  let egressStream: GuestStream | undefined;
  try {
    await engine.call({ method: "POST", path: `/containers/${id}/start` });
    signal.throwIfAborted();
    if (host.isRemote && spec.egressSocket !== undefined) {
      egressStream = await openEgressStream(host, { containerId: id, node: image.node, signal });
    }
  } catch (error) {
    socket.destroy();
    throw error;
  }
  const instance = new DockerInstance({
    host,
    instanceId: spec.id,
    containerId: id,
    ...attached,
    egressStream,
    mounts,
  });
  const unwatch = await watchWorkspace(host, { spec, mounts, instance });
  void instance.exited.then(unwatch);
  return instance;
}

/** Keeps a workspace that existed before. */
async function orRemoved<T>(
  host: DockerHost,
  { id, spec }: Pick<Starting, "id" | "spec">,
  start: () => Promise<T>,
): Promise<T> {
  const volume = host.ownership.volumeName(spec.folder);
  const isNew = !host.prepared.has(volume);
  try {
    return await start();
  } catch (error) {
    await removeContainer(host, id);
    if (isNew) await discardVolume(host, volume);
    throw error;
  }
}

/** Makes the volume explicitly: not every engine sets labels on volumes that it makes for a container. */
async function makeWorkspace(host: DockerHost, spec: InstanceSpec, mounts: readonly InstanceMount[]): Promise<void> {
  const name = host.ownership.volumeName(spec.folder);
  if (host.prepared.has(name) || mounts.some(({ guestPath }) => guestPath === spec.workspacePath)) return;
  // It is used again: a pending removal must not remove it.
  host.leftVolumes.delete(name);
  const json = { Name: name, Driver: "local", Labels: host.ownership.labels("workspace", spec.id) };
  await host.engine.call({ method: "POST", path: "/volumes/create", json });
}

/** A new volume belongs to root; its owner becomes the instance's user before anything runs. */
async function prepareWorkspace(
  host: DockerHost,
  { id, spec, uid, mounts }: Starting & { uid: number },
): Promise<void> {
  const isBound = mounts.some(({ guestPath }) => guestPath === spec.workspacePath);
  const volume = host.ownership.volumeName(spec.folder);
  if (isBound || host.prepared.has(volume)) return;
  // The folder itself: engines ignore ".".
  const tar = packTar([{ name: "/", mode: 0o755, uid }]);
  const query = { path: spec.workspacePath };
  await host.engine.call({ method: "PUT", path: `/containers/${id}/archive`, query, tar });
  host.prepared.add(volume);
}

/** Only the sandbox's user may connect to its egress socket. */
export async function grantEgressSocket(
  socket: string,
  uid: number,
  { mapsUsers }: Pick<DockerHost["facts"], "mapsUsers">,
): Promise<void> {
  if (process.getuid?.() === 0 && !mapsUsers) await chown(socket, uid, uid);
  // The engine maps the user to an id that the server does not know. Other users cannot open the folder of the socket.
  else await chmod(socket, 0o666);
}

/** Measures the workspace regularly where the server can read the engine's volumes. */
async function watchWorkspace(
  host: DockerHost,
  { spec, mounts, instance }: { spec: InstanceSpec; mounts: readonly InstanceMount[]; instance: DockerInstance },
): Promise<() => void> {
  if (!host.watchesWorkspaces || mounts.some(({ guestPath }) => guestPath === spec.workspacePath))
    return () => undefined;
  const path = `/volumes/${host.ownership.volumeName(spec.folder)}`;
  const { Mountpoint: folder } = volumeSchema.parse((await host.engine.call({ method: "GET", path })).json);
  const watched = { folder, maxBytes: spec.resources.diskBytes, processes: () => instance.processes() };
  return host.workspaceWatch.watch(watched, () => instance.end("disk"));
}
