import { createHash } from "node:crypto";
import { instanceEnvironment, temporarySpace } from "../start-request.ts";
import { type InstanceMount, EGRESS_SOCKET, GUEST_FOLDER } from "../instance-mounts.ts";
import type { InstanceSpec } from "../runtime.ts";
import type { DockerHost } from "./docker-host.ts";
import type { SandboxImage } from "./images.ts";
import { ULIMITS, ulimit } from "./containers.ts";

const FIRST_UID = 1_000_000_000;
const UID_COUNT = 500_000_000;
const COMMON_UID = 1000;

/** The init process: it ends the container when the server is gone, whatever happens to the guest, and it reaps orphans. */
function firstProcess({ python }: SandboxImage): readonly string[] {
  return [python, "-I", "-S", `${GUEST_FOLDER}/container_init.py`];
}

interface ContainerParts {
  readonly spec: InstanceSpec;
  readonly image: SandboxImage;
  readonly mounts: readonly InstanceMount[];
  readonly uid: number;
  readonly command: readonly string[];
}

/** A user id for each sandbox that has no user on the host. Engines that map users have one id for all. */
export function uidOf(host: DockerHost, spec: InstanceSpec, mounts: readonly InstanceMount[]): number {
  const writable = mounts.find(({ isReadOnly, owner }) => !isReadOnly && owner !== undefined && owner.uid !== 0);
  if (writable?.owner !== undefined && !host.facts.mapsUsers) return writable.owner.uid;
  if (host.facts.mapsUsers) return COMMON_UID;
  return FIRST_UID + (createHash("sha256").update(spec.folder).digest().readUInt32BE(0) % UID_COUNT);
}

/** The body of `POST /containers/create`. */
export function containerRequest(host: DockerHost, parts: ContainerParts): unknown {
  const { spec, image, uid, command } = parts;
  return {
    Image: image.id,
    User: `${uid}:${uid}`,
    Hostname: "sandbox",
    WorkingDir: spec.workspacePath,
    Entrypoint: [...firstProcess(image), ...command],
    Cmd: [],
    Env: Object.entries(insideEnvironment(host, parts)).map(([name, value]) => `${name}=${value}`),
    Labels: host.ownership.labels("cell", spec.id),
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    // The container's input ends with the server, and the guest ends with its input.
    StdinOnce: true,
    Tty: false,
    NetworkDisabled: true,
    // No process inside handles SIGTERM, and Podman would wait for it.
    StopSignal: "SIGKILL",
    // A health check of the image would run inside beside the guest.
    ...(image.hasHealthcheck && { Healthcheck: { Test: ["NONE"] } }),
    HostConfig: { ...confinement(host), ...resourceLimits(spec), Mounts: mountRequests(host, parts) },
  };
}

function confinement(host: DockerHost): Record<string, unknown> {
  return {
    NetworkMode: "none",
    IpcMode: "private",
    CgroupnsMode: "private",
    ReadonlyRootfs: true,
    Privileged: false,
    CapDrop: ["ALL"],
    SecurityOpt: ["no-new-privileges", `seccomp=${host.seccomp}`],
    // By default the engine writes the host's name servers into the container.
    Dns: ["127.0.0.1"],
    // Otherwise the engine writes the frames of the guest to a log.
    LogConfig: { Type: "none" },
    RestartPolicy: { Name: "no" },
    ...(host.ociRuntime !== "" && { Runtime: host.ociRuntime }),
  };
}

function resourceLimits({ resources }: InstanceSpec): Record<string, unknown> {
  const { cpus, memoryBytes, maxPids, diskBytes } = resources;
  const { tmpBytes, shmBytes } = temporarySpace(resources);
  return {
    Memory: memoryBytes,
    MemorySwap: memoryBytes,
    NanoCpus: Math.round(cpus * 1e9),
    PidsLimit: maxPids,
    ShmSize: shmBytes,
    Tmpfs: { "/tmp": `rw,nosuid,nodev,exec,mode=1777,size=${tmpBytes}` },
    Ulimits: [...ULIMITS, ulimit("fsize", diskBytes)],
  };
}

function mountRequests(host: DockerHost, { spec, image, mounts }: ContainerParts): unknown[] {
  const tree = host.templates[spec.template]?.folders ?? [];
  const hasOwnWorkspace = mounts.some(({ guestPath }) => guestPath === spec.workspacePath);
  return [
    ...image.volumes.map(({ name, folder }) => volumeRequest(name, folder, { isReadOnly: true })),
    ...(hasOwnWorkspace
      ? []
      : [volumeRequest(host.ownership.volumeName(spec.folder), spec.workspacePath, { isReadOnly: false })]),
    ...tree.map(({ hostPath, guestPath }) => bindRequest(hostPath, guestPath, true)),
    ...mounts.map(({ hostPath, guestPath, isReadOnly }) => bindRequest(hostPath, guestPath, isReadOnly)),
    ...(spec.egressSocket === undefined || host.isRemote ? [] : [bindRequest(spec.egressSocket, EGRESS_SOCKET, false)]),
  ];
}

function volumeRequest(name: string, folder: string, { isReadOnly }: { readonly isReadOnly: boolean }): unknown {
  return { Type: "volume", Source: name, Target: folder, ReadOnly: isReadOnly, VolumeOptions: { NoCopy: true } };
}

function bindRequest(hostPath: string, guestPath: string, isReadOnly: boolean): unknown {
  return { Type: "bind", Source: hostPath, Target: guestPath, ReadOnly: isReadOnly };
}

/** The whole environment of programs inside, beside the image's: nothing of the server's environment. */
export function insideEnvironment(
  host: DockerHost,
  { spec, image }: Pick<ContainerParts, "spec" | "image">,
): Record<string, string> {
  const template = host.templates[spec.template];
  const own = spec.egressSocket === undefined ? {} : egressVariable(host);
  return instanceEnvironment(spec, { template, path: image.path, own });
}

function egressVariable({ isRemote }: DockerHost): Record<string, string> {
  return isRemote ? { OWLCLAW_EGRESS_RELAY: "1" } : { OWLCLAW_EGRESS: EGRESS_SOCKET };
}

/** The default command of a container. */
export function guestCommand(image: SandboxImage): readonly string[] {
  return [image.node, `${GUEST_FOLDER}/guest.mjs`];
}
