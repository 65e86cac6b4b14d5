import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceSpec } from "../runtime.ts";
import { adoptInstance, type BubblewrapInstance, type LaunchedInstance } from "./bubblewrap-instance.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";
import { type InstanceMount, EGRESS_SOCKET, GUEST_FOLDER, volumeMounts } from "../instance-mounts.ts";
import { checkSpec, type StartRequest } from "../start-request.ts";
import { type ControlGroup, endGroups } from "./cgroups/limited-groups.ts";
import { launch, type Launch } from "./launch.ts";
import { noteUid, readUid } from "./uid-range.ts";

const IMAGE_FILE = "workspace.img";

/** Prepares the workspace, the limits and the user of an instance and starts it. When the start fails, its control group is removed. */
export async function startInstance(host: BubblewrapHost, request: StartRequest): Promise<BubblewrapInstance> {
  const { spec, signal } = request;
  checkSpec(spec, host);
  signal.throwIfAborted();
  const mounts = await instanceMounts(host, spec);
  const claim = { id: spec.id, serverId: host.serverId, owner: host.records.owner, folder: spec.folder, groups: [] };
  // Before anything is made, and until the folder is discarded: another server can clean up after a crash.
  await host.records.writeInstance(claim);
  await mkdir(spec.folder, { recursive: true, mode: 0o700 });
  const uid = await instanceUid(host, spec.folder);
  const workspace = await prepareWorkspace({ host, spec, uid });
  if (uid !== undefined && spec.egressSocket !== undefined) await chown(spec.egressSocket, uid, uid);
  const group = await createGroup(host, spec);
  const record = { ...claim, groups: [...(group?.folders ?? [])] };
  try {
    await host.records.writeInstance(record);
    signal.throwIfAborted();
    const command = request.command ?? spec.program ?? [host.node.executable, `${GUEST_FOLDER}/guest.mjs`];
    const launched = await launch(host, { spec, mounts, joinFiles: group?.joinFiles ?? [], uid, workspace, command });
    const instance = await adoptUnlessAborted(host, { launched, record, group, signal, mounts });
    const unwatch = watchWorkspace({ host, spec, workspace, instance });
    void instance.exited.finally(unwatch);
    return instance;
  } catch (error) {
    await endGroups(group?.folders ?? []);
    throw error;
  }
}

async function adoptUnlessAborted(
  host: BubblewrapHost,
  running: LaunchedInstance & { readonly signal: AbortSignal },
): Promise<BubblewrapInstance> {
  const { launched, signal } = running;
  const abort = (): boolean => launched.child.kill("SIGKILL");
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await adoptInstance(host, running);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Removes everything of a stopped instance: its folder with the workspace, its user id and its records. Returns whether all is gone. */
export async function discardInstance(host: BubblewrapHost, folder: string): Promise<boolean> {
  const uid = await readUid(folder);
  return await host.folders.remove(folder, async () => {
    if (uid !== undefined) await host.privileges?.uids.release(uid);
    await host.records.removeInstancesOf(folder);
  });
}

async function instanceMounts(host: BubblewrapHost, spec: InstanceSpec): Promise<InstanceMount[]> {
  const readOnly = (mount: Pick<InstanceMount, "hostPath" | "guestPath" | "kind">): InstanceMount => ({
    ...mount,
    isReadOnly: true,
  });
  const interpreters = [host.node, host.python, host.browser].flatMap((found) => found?.trees ?? []);
  return [
    readOnly({ hostPath: host.guestFolder, guestPath: GUEST_FOLDER, kind: "folder" }),
    ...interpreters.map(({ hostPath, kind }) => readOnly({ hostPath, guestPath: hostPath, kind })),
    ...(host.templates[spec.template]?.folders ?? []).map((folder) => readOnly({ ...folder, kind: "folder" })),
    ...(spec.egressSocket === undefined
      ? []
      : [{ hostPath: spec.egressSocket, guestPath: EGRESS_SOCKET, kind: "file", isReadOnly: false } as const]),
    ...(await volumeMounts({ ...spec, dataFolder: host.dataFolder, empty: host.empty })),
  ];
}

/** A workspace keeps its user id as long as it exists: the next instance on it owns the files. */
async function instanceUid(host: BubblewrapHost, folder: string): Promise<number | undefined> {
  if (host.privileges === undefined) return undefined;
  if (host.controlsOff.has("own-uid")) return 0;
  const known = await readUid(folder);
  if (known !== undefined) return known;
  return await host.privileges.uids.take(async (uid) => await noteUid(folder, uid));
}

async function prepareWorkspace(options: {
  host: BubblewrapHost;
  spec: InstanceSpec;
  uid: number | undefined;
}): Promise<Launch["workspace"]> {
  const { host, spec, uid } = options;
  const images = host.privileges?.images;
  if (images !== undefined) {
    const image = join(spec.folder, IMAGE_FILE);
    await images.provide(image, spec.resources.diskBytes);
    return { image };
  }
  const folder = join(spec.folder, "files");
  await mkdir(join(folder, "workspace"), { recursive: true, mode: 0o755 });
  // The instance's user owns the workspace and must be able to pass through its parent.
  if (uid !== undefined) await chmod(folder, 0o755);
  return { folder };
}

async function createGroup(host: BubblewrapHost, spec: InstanceSpec): Promise<ControlGroup | undefined> {
  if (host.controlGroups === undefined || host.controlsOff.has("control-groups")) return undefined;
  return await host.controlGroups.create(spec.id, spec.resources);
}

function watchWorkspace(options: {
  host: BubblewrapHost;
  spec: InstanceSpec;
  workspace: Launch["workspace"];
  instance: BubblewrapInstance;
}): () => void {
  const { host, spec, workspace, instance } = options;
  if ("image" in workspace || host.controlsOff.has("disk-image")) return () => undefined;
  const folder = join(workspace.folder, "workspace");
  const watched = { folder, maxBytes: spec.resources.diskBytes, processes: () => instance.processes() };
  return host.workspaceWatch.watch(watched, () => instance.end("disk"));
}
