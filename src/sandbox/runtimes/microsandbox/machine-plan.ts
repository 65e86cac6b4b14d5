import { randomBytes } from "node:crypto";
import { instanceEnvironment, temporarySpace } from "../start-request.ts";
import { type InstanceMount, EGRESS_SOCKET, GUEST_FOLDER, NODE_FOLDER } from "../instance-mounts.ts";
import type { InstanceSpec } from "../runtime.ts";
import { encodeProgram } from "../seccomp/bpf-program.ts";
import { seccompFilter } from "../seccomp/filter.ts";
import { CREDIT_STEP_BYTES, CREDIT_WINDOW_BYTES } from "./host-socket.ts";
import { LAUNCH_SCRIPT } from "./launch-script.ts";
import type { MachineHost } from "./machine-host.ts";
import type { MachineBuilder, MachineMount } from "./sdk.ts";

const MIB = 1024 * 1024;
const PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/** The only user of a machine. */
const UID = 1000;
const STREAM_PORT = 5001;
const EGRESS_PORT = 5002;
/** As long as a guest may take for its first answer. */
const CONNECT_SECONDS = 60;
/** The vsock of microsandbox loses larger pieces. */
const PIECE_BYTES = 4096;
const MAX_OPEN_FILES = 65_536;
/** For files that are written while the machine starts; the root is read-only afterwards. */
const ROOT_MIB = 64;

/** The exit code of the launcher when the kernel inside killed the program because of its memory limit. */
export const MEMORY_CODE = 253;
/** The first program of every machine. */
export const PYTHON = "/usr/bin/python3";

export interface MachineParts {
  readonly name: string;
  /** The disk of the workspace; absent when a volume is mounted there. */
  readonly disk: string | undefined;
  readonly spec: InstanceSpec;
  readonly mounts: readonly InstanceMount[];
  readonly streamSocket: string;
  readonly egressSocket: string | undefined;
  readonly command?: readonly string[];
}

/** Unique, and with the id of the data folder: other applications may have machines on this host. */
export function newMachineName({ ownership }: MachineHost, instanceId: string): string {
  return `owlclaw-${ownership.dataId}-${instanceId}-${randomBytes(3).toString("hex")}`;
}

/** The machine has no network device: allowed traffic goes over vsock to the socket of the egress proxy. */
export function planMachine(host: MachineHost, parts: MachineParts): MachineBuilder {
  const { spec, mounts, streamSocket, egressSocket } = parts;
  const builder = host.sdk.Sandbox.builder(parts.name)
    .image(host.imageOf(spec.template))
    .pullPolicy("never")
    .rootDisk((disk) => disk.tmpfs().size(ROOT_MIB))
    .cpus(Math.max(1, Math.ceil(spec.resources.cpus)))
    .memory(Math.ceil(spec.resources.memoryBytes / MIB))
    .hostname("sandbox")
    .labels(host.ownership.labels("cell", spec.id))
    .disableNetwork()
    .vsock(streamSocket, STREAM_PORT)
    .maxDuration(host.maxDurationSeconds)
    .quietLogs();
  if (egressSocket !== undefined) builder.vsock(egressSocket, EGRESS_PORT);
  const { disk } = parts;
  if (disk !== undefined) {
    builder.volume(spec.workspacePath, (mount) => mount.disk(disk).format("raw").fstype("ext4").nosuid().nodev());
  }
  const tree = host.templates[spec.template]?.folders ?? [];
  const shown = [
    { hostPath: host.guestFolder, guestPath: GUEST_FOLDER, isReadOnly: true },
    ...(host.nodeFolder === undefined ? [] : [{ hostPath: host.nodeFolder, guestPath: NODE_FOLDER, isReadOnly: true }]),
    ...tree.map((folder) => ({ ...folder, isReadOnly: true })),
    ...mounts,
  ];
  for (const folder of shown) builder.volume(folder.guestPath, (mount) => bound(mount, folder));
  return builder;
}

function bound(
  mount: MachineMount,
  { hostPath, isReadOnly }: Pick<InstanceMount, "hostPath" | "isReadOnly">,
): MachineMount {
  const made = mount.bind(hostPath).nosuid().nodev();
  // Files belong to the machine's user inside and to the server's user on the host.
  return isReadOnly ? made.readonly() : made.owner(UID, UID);
}

/** The arguments of Python for the launcher. */
export function launchArguments(host: MachineHost, parts: Omit<MachineParts, "name">): string[] {
  const { spec } = parts;
  const { diskBytes, maxPids } = spec.resources;
  const given = {
    uid: UID,
    command: parts.command ?? spec.program ?? guestCommand(host),
    env: insideEnvironment(host, spec),
    workspace: spec.workspacePath,
    ownsWorkspace: parts.disk !== undefined,
    filter: encodeProgram(seccompFilter(process.arch === "arm64" ? "arm64" : "x64")).toString("base64"),
    ...temporarySpace(spec.resources),
    limits: { NPROC: maxPids, CORE: 0, FSIZE: diskBytes, NOFILE: MAX_OPEN_FILES, MEMLOCK: MIB },
    streamPort: STREAM_PORT,
    connectSeconds: CONNECT_SECONDS,
    creditBytes: CREDIT_STEP_BYTES,
    windowBytes: CREDIT_WINDOW_BYTES,
    pieceBytes: PIECE_BYTES,
    memoryCode: MEMORY_CODE,
    ...(spec.egressSocket !== undefined && { egressPort: EGRESS_PORT, egressSocket: EGRESS_SOCKET }),
  };
  return ["-I", "-S", "-c", LAUNCH_SCRIPT, JSON.stringify(given)];
}

/** An absolute path: the launcher does not search the PATH. */
export function nodeInside({ nodeFolder }: Pick<MachineHost, "nodeFolder">): string {
  return nodeFolder === undefined ? "/usr/local/bin/node" : `${NODE_FOLDER}/node`;
}

function guestCommand(host: MachineHost): readonly string[] {
  return [nodeInside(host), `${GUEST_FOLDER}/guest.mjs`];
}

/** The whole environment of programs inside: nothing of the server's environment. */
export function insideEnvironment(host: MachineHost, spec: InstanceSpec): Record<string, string> {
  const template = host.templates[spec.template];
  const path = host.nodeFolder === undefined ? PATH : [NODE_FOLDER, ...PATH];
  const own = spec.egressSocket === undefined ? {} : { OWLCLAW_EGRESS: EGRESS_SOCKET };
  return instanceEnvironment(spec, { template, path, own });
}
