import type { InstanceSpec } from "../runtime.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";

const MIB = 1024 * 1024;

/** The first line of Node that makes all its room for compiled code writable when it starts. */
const RESERVING_NODE = 23;

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
