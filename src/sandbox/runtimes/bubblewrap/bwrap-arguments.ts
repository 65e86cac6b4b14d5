import { dirname } from "node:path";
import { instanceEnvironment, temporarySpace } from "../start-request.ts";
import type { InstanceSpec } from "../runtime.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";
import { type InstanceMount, EGRESS_SOCKET } from "../instance-mounts.ts";
import { INSIDE_GID, INSIDE_UID, maskedProcArguments, systemTreeArguments } from "./system-tree.ts";

/** Descriptors that bwrap inherits from the launcher. */
export const ARGUMENTS_FD = 3;
export const INFO_FD = 4;
export const SECCOMP_FD = 5;

const IDENTITY = ["--uid", String(INSIDE_UID), "--gid", String(INSIDE_GID), "--hostname", "sandbox"];
const IDENTITY_ARGUMENTS = [...IDENTITY, "--cap-drop", "ALL", "--die-with-parent", "--new-session"];

const SYSTEM_PATH = ["/usr/local/bin", "/usr/bin", "/bin"];
const MIB = 1024 * 1024;
/** Since this major version, Node reserves the memory for compiled code as writable when it starts. */
const RESERVING_NODE = 23;

export interface BwrapPlan {
  readonly spec: InstanceSpec;
  /** Where bwrap finds the workspace, the generated `/etc` and each mount: staged by a privileged launcher, or the host's path. */
  readonly workspaceSource: string;
  readonly etcSource: string;
  /** A devpts with a maximum of terminals; absent: the devpts that bwrap mounts. */
  readonly terminalsSource?: string | undefined;
  readonly mounts: ReadonlyArray<InstanceMount & { readonly source: string }>;
}

/** All options of bwrap. They are passed on a descriptor: values of the environment must not appear in a process list. */
export async function bwrapArguments(host: BubblewrapHost, plan: BwrapPlan): Promise<Buffer> {
  const { spec } = plan;
  const { tmpBytes, shmBytes } = temporarySpace(spec.resources);
  const args = [
    // Confinement comes first: when the server dies while it writes the options, bwrap may read only their beginning.
    ...namespaceArguments(host),
    "--info-fd",
    String(INFO_FD),
    ...(host.controlsOff.has("seccomp") ? [] : ["--seccomp", String(SECCOMP_FD)]),
    ...(await rootArguments(host, plan)),
    ...tmpfsArguments(host, "/tmp", tmpBytes),
    // Its own file system: on bwrap's `/dev` it would have no size limit.
    ...tmpfsArguments(host, "/dev/shm", shmBytes),
    "--bind",
    plan.workspaceSource,
    spec.workspacePath,
    ...plan.mounts.flatMap(({ isReadOnly, source, guestPath }) => [
      isReadOnly ? "--ro-bind" : "--bind",
      source,
      guestPath,
    ]),
    // The user inside owns the file systems on which bwrap makes the root and /dev.
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

/** The whole environment of programs inside: nothing of the server's environment. */
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

/** Half a gigabyte for each thread that runs JavaScript. Almost none of it is used, but `RLIMIT_DATA` counts it, and no option of Node reduces it. */
const RESERVED_BY_NODE_BYTES = Number.parseInt(process.versions.node, 10) >= RESERVING_NODE ? 512 * MIB : 0;

type Request = Pick<InstanceSpec, "resources">;

/**
 * Without control groups the kernel can still limit the number of processes (counted per user namespace, so per instance) and
 * what one process allocates and writes. `RLIMIT_AS` would stop Node, which reserves far more address space than it uses.
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

/** The guest runs on Node, so its own limit is higher: it sets the limit of the programs that it starts. */
export function limitEnvironment(host: BubblewrapHost, { resources }: Request): Readonly<Record<string, string>> {
  if (!isLimitedByProcess(host) || RESERVED_BY_NODE_BYTES === 0) return {};
  return { OWLCLAW_DATA_BYTES: String(resources.memoryBytes) };
}

function isLimitedByProcess({ controlGroups, controlsOff }: BubblewrapHost): boolean {
  return controlGroups === undefined && !controlsOff.has("control-groups");
}
