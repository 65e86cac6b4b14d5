import { dirname } from "node:path";
import { instanceEnvironment, temporarySpace } from "../start-request.ts";
import type { InstanceSpec } from "../runtime.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";
import { type InstanceMount, EGRESS_SOCKET } from "../instance-mounts.ts";
import { INSIDE_GID, INSIDE_UID, maskedProcArguments, systemTreeArguments } from "./system-tree.ts";

/** Descriptors that the launcher hands to bwrap. */
export const ARGUMENTS_FD = 3;
export const INFO_FD = 4;
export const SECCOMP_FD = 5;

const IDENTITY = ["--uid", String(INSIDE_UID), "--gid", String(INSIDE_GID), "--hostname", "sandbox"];
const IDENTITY_ARGUMENTS = [...IDENTITY, "--cap-drop", "ALL", "--die-with-parent", "--new-session"];

const SYSTEM_PATH = ["/usr/local/bin", "/usr/bin", "/bin"];
const MIB = 1024 * 1024;
/** The first line of Node that makes all its room for compiled code writable when it starts. */
const RESERVING_NODE = 23;

export interface BwrapPlan {
  readonly spec: InstanceSpec;
  /** Where bwrap finds the workspace, our `/etc` and each mount: staged by a privileged launcher, or the host's own path. */
  readonly workspaceSource: string;
  readonly etcSource: string;
  /** Terminals with a maximum; absent: those that bwrap makes. */
  readonly terminalsSource?: string | undefined;
  readonly mounts: ReadonlyArray<InstanceMount & { readonly source: string }>;
}

/** The whole of bwrap's options. They travel over a descriptor: values of the environment never show in a list of processes. */
export async function bwrapArguments(host: BubblewrapHost, plan: BwrapPlan): Promise<Buffer> {
  const { spec } = plan;
  const { tmpBytes, shmBytes } = temporarySpace(spec.resources);
  const args = [
    // What confines comes first: whoever reads only a part of these, because the server died, is confined all the same.
    ...namespaceArguments(host),
    "--info-fd",
    String(INFO_FD),
    ...(host.controlsOff.has("seccomp") ? [] : ["--seccomp", String(SECCOMP_FD)]),
    ...(await rootArguments(host, plan)),
    ...tmpfsArguments(host, "/tmp", tmpBytes),
    // In a file system of its own: on bwrap's `/dev` it would have no limit.
    ...tmpfsArguments(host, "/dev/shm", shmBytes),
    "--bind",
    plan.workspaceSource,
    spec.workspacePath,
    ...plan.mounts.flatMap(({ isReadOnly, source, guestPath }) => [
      isReadOnly ? "--ro-bind" : "--bind",
      source,
      guestPath,
    ]),
    // bwrap makes its root and /dev on file systems that belong to the user inside.
    ...(host.controlsOff.has("system-tree") ? [] : ["--remount-ro", "/dev", "--remount-ro", "/"]),
    "--chdir",
    spec.workspacePath,
    ...Object.entries(insideEnvironment(host, spec)).flatMap(([name, value]) => ["--setenv", name, value]),
  ];
  return Buffer.from(args.map((arg) => `${arg}\0`).join(""));
}

function namespaceArguments(host: BubblewrapHost): string[] {
  const namespaces = host.controlsOff.has("processes")
    ? ["--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"]
    : ["--unshare-all"];
  return [
    ...namespaces,
    ...(host.controlsOff.has("network") ? ["--share-net"] : []),
    "--unshare-user",
    ...(host.controlsOff.has("nested-namespaces") ? [] : ["--disable-userns"]),
    ...IDENTITY_ARGUMENTS,
    ...(host.controlsOff.has("environment") ? [] : ["--clearenv"]),
  ];
}

function tmpfsArguments(host: BubblewrapHost, path: string, sizeBytes: number): string[] {
  const size = host.controlsOff.has("tmp-size") ? [] : ["--size", String(sizeBytes)];
  return ["--perms", "1777", ...size, "--tmpfs", path];
}

async function rootArguments(host: BubblewrapHost, plan: BwrapPlan): Promise<string[]> {
  const everything = host.controlsOff.has("system-tree") ? ["--bind", "/", "/host"] : [];
  const tree = [...(await systemTreeArguments(plan.etcSource)), ...everything];
  const proc = host.controlsOff.has("processes")
    ? ["--bind", "/proc", "/proc"]
    : ["--proc", "/proc", ...(await maskedProcArguments())];
  const terminals = plan.terminalsSource === undefined ? [] : ["--dev-bind", plan.terminalsSource, "/dev/pts"];
  return [...tree, ...proc, "--dev", "/dev", ...terminals];
}

/** Everything a program inside can read of an environment: nothing of the server's own. */
export function insideEnvironment(host: BubblewrapHost, spec: InstanceSpec): Record<string, string> {
  const template = host.templates[spec.template];
  const interpreterFolders = [host.node, host.python].flatMap((found) =>
    found === undefined ? [] : [dirname(found.executable)],
  );
  const own = {
    ...(host.browser === undefined ? {} : { OWLCLAW_CHROMIUM: host.browser.executable }),
    ...(spec.egressSocket === undefined ? {} : { OWLCLAW_EGRESS: EGRESS_SOCKET }),
    ...limitEnvironment(host, spec),
  };
  return instanceEnvironment(spec, { template, path: [...interpreterFolders, ...SYSTEM_PATH], own });
}

/**
 * That room is half a gigabyte for each thread that runs JavaScript. Next to nothing of it is used, and no option of Node
 * makes it smaller; the kernel counts it as data all the same.
 */
const RESERVED_BY_NODE_BYTES = Number.parseInt(process.versions.node, 10) >= RESERVING_NODE ? 512 * MIB : 0;

type Request = Pick<InstanceSpec, "resources">;

/**
 * Without control groups the kernel can still count processes (inside the user namespace, so per cell) and cap what one
 * process allocates and writes. `RLIMIT_AS` would stop Node, which reserves far more than it uses.
 */
export function limitedCommand(
  host: BubblewrapHost,
  { resources }: Request,
  command: readonly string[],
): readonly string[] {
  if (!isLimitedByProcess(host)) return command;
  const { maxPids, memoryBytes, diskBytes } = resources;
  const dataBytes = memoryBytes + (command[0] === host.node.executable ? RESERVED_BY_NODE_BYTES : 0);
  const limits = [`--nproc=${maxPids}`, `--data=${dataBytes}`, `--fsize=${diskBytes}`];
  return ["/usr/bin/prlimit", ...limits, "--", ...command];
}

/** Where the guest, which is Node, has more than its programs are to have, it is told what they are to have. */
export function limitEnvironment(host: BubblewrapHost, { resources }: Request): Readonly<Record<string, string>> {
  if (!isLimitedByProcess(host) || RESERVED_BY_NODE_BYTES === 0) return {};
  return { OWLCLAW_DATA_BYTES: String(resources.memoryBytes) };
}

function isLimitedByProcess({ controlGroups, controlsOff }: BubblewrapHost): boolean {
  return controlGroups === undefined && !controlsOff.has("control-groups");
}
