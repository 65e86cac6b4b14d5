import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import { provideEmptyPaths } from "../instance-mounts.ts";
import { replaceFile, isThere } from "../host-files.ts";
import type { Instance, Runtime, TemplateTree } from "../runtime.ts";
import { checkBelow } from "../start-request.ts";
import { InstanceFolders } from "./instance-folders.ts";
import { type BubblewrapHost, type Controls, NONE_OFF } from "./bubblewrap-host.ts";
import { openControlGroups, plannedGroups } from "./cgroups/control-groups.ts";
import { createDiskImages } from "./disk-image.ts";
import { endServerGroups } from "./cgroups/limited-groups.ts";
import { createGuestCopies } from "./guest-copy.ts";
import { findBrowser, findNode, findPython } from "./interpreters.ts";
import { probeBubblewrap } from "./probe.ts";
import { identifyProcess } from "../../../platform/process-identity.ts";
import { reapDeadServers } from "./reaper.ts";
import { openRecords } from "./records.ts";
import { findTool } from "../run-tool.ts";
import { encodeProgram } from "../seccomp/bpf-program.ts";
import { seccompFilter } from "../seccomp/filter.ts";
import type { Architecture } from "../seccomp/syscall-numbers.ts";
import { discardInstance, startInstance } from "./start-instance.ts";
import { writeOwnEtc } from "./system-tree.ts";
import { createUidRange } from "./uid-range.ts";
import { createWorkspaceWatch } from "../workspace-watch.ts";

/** At the stop of a server each instance has been stopped already. Control groups that are still in use are left to the next server. */
const LAST_CLEANUP_MS = 5000;

export interface BubblewrapOptions {
  readonly dataFolder: string;
  readonly logger: Logger;
  /** Folder of the host with `guest.mjs` and the Python drivers; it is copied. */
  readonly guestFolder: string;
  /** `required`: instances start only when the kernel enforces every limit. */
  readonly limits: "required" | "best-effort";
  /** Letters, digits, `-` and `_`; unique among all servers on the machine. */
  readonly serverId: string;
  /** Folders of the host per template, beside the system's tree. */
  readonly templates?: Readonly<Record<string, TemplateTree>>;
  /** The Python to mount inside; default: the system's, then the first on the search path. */
  readonly python?: string;
  /** Path of the browser to mount inside; empty or absent: the system's, if there is one. */
  readonly browser?: string;
  /** The PATH of the server's user, to find interpreters of version managers. */
  readonly searchPath?: string;
  /** Does not remove workspaces of dead servers. */
  readonly keepsWorkspaces?: boolean;
  /** How often a workspace without its own disk is measured. */
  readonly watchIntervalMs?: number;
}

/** Instances that bubblewrap makes on the host's kernel and system tree. */
export async function createBubblewrapRuntime(options: BubblewrapOptions): Promise<Runtime> {
  return await assembleRuntime(options, NONE_OFF);
}

/** The same with controls switched off, for tests only. */
export async function assembleRuntime(options: BubblewrapOptions, controlsOff: Controls): Promise<Runtime> {
  const host = await createHost(options, controlsOff);
  const instances = new Set<Instance>();
  let isClosed = false;
  const start: Runtime["start"] = async (spec, signal) => {
    if (isClosed) throw new OwlError("shutting_down", "the sandbox runtime is closed");
    checkLimits(host, options.limits);
    const instance = await startInstance(host, { spec, signal });
    instances.add(instance);
    void instance.cleared.then(() => instances.delete(instance));
    return instance;
  };
  return {
    name: "bubblewrap",
    probe: async (signal) => await probeBubblewrap(host, signal),
    start,
    discard: async (folder) => {
      checkBelow(options.dataFolder, folder);
      return await discardInstance(host, folder);
    },
    left: () => host.folders.left,
    reap: async () => ({ removed: await reapDeadServers(host, options.keepsWorkspaces ?? false) }),
    close: async () => {
      isClosed = true;
      await Promise.all([...instances].map(async (instance) => await instance.stop()));
      host.workspaceWatch.close();
      host.folders.close();
      await host.guestCopies.remove(options.serverId);
      const groups = host.controlGroups?.folders ?? [];
      if (await endServerGroups(groups, LAST_CLEANUP_MS)) await host.records.removeServer(options.serverId);
    },
  };
}

async function createHost(options: BubblewrapOptions, controlsOff: Controls): Promise<BubblewrapHost> {
  const { dataFolder, serverId, logger, templates = {} } = options;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(serverId)) throw new OwlError("internal", "not an id of a server");
  const owner = identifyProcess(process.pid);
  if (owner === undefined) throw new OwlError("internal", "bubblewrap sandboxes need Linux with /proc");
  const stateFolder = join(dataFolder, "bubblewrap");
  await mkdir(dataFolder, { recursive: true, mode: 0o700 });
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const records = await openRecords(stateFolder, owner);
  const groupName = `owlclaw-${serverId}`;
  await records.writeServer({ serverId, owner, groups: await plannedGroups(groupName) });
  const guestCopies = createGuestCopies(join(stateFolder, "guests"));
  const [bwrap = "bwrap", node, python, browser, controlGroups, seccompFile, privileges, guestFolder, empty] =
    await Promise.all([
      findTool("bwrap"),
      findNode(process.execPath),
      findPython(options),
      findBrowser(options.browser ?? ""),
      controlsOff.has("control-groups") ? undefined : openControlGroups(groupName),
      writeSeccompFile(stateFolder),
      rootPrivileges(stateFolder, controlsOff),
      guestCopies.make(serverId, options.guestFolder),
      provideEmptyPaths(stateFolder),
      writeOwnEtc(join(stateFolder, "etc")),
    ]);
  if (controlGroups !== undefined) await records.writeServer({ serverId, owner, groups: [...controlGroups.folders] });
  return {
    serverId,
    dataFolder,
    stateFolder,
    logger,
    templates,
    controlsOff,
    bwrap,
    node,
    python,
    browser,
    controlGroups,
    records,
    seccompFile,
    privileges,
    guestCopies,
    guestFolder,
    empty,
    folders: new InstanceFolders({ logger }),
    workspaceWatch: createWorkspaceWatch({ intervalMs: options.watchIntervalMs }),
  };
}

async function rootPrivileges(stateFolder: string, controlsOff: Controls): Promise<BubblewrapHost["privileges"]> {
  if (process.getuid?.() !== 0) return undefined;
  const hasDisks = !controlsOff.has("disk-image") && (await canMountImages());
  return {
    images: hasDisks ? createDiskImages(join(stateFolder, "disks")) : undefined,
    uids: createUidRange(join(stateFolder, "uids")),
  };
}

/** The name contains a digest of the content: servers of different versions may share the data folder. */
async function writeSeccompFile(stateFolder: string): Promise<string> {
  const program = encodeProgram(seccompFilter(supportedArchitecture()));
  const digest = createHash("sha256").update(program).digest("hex").slice(0, 16);
  const file = join(stateFolder, `seccomp-${digest}.bpf`);
  await replaceFile(file, program, 0o600);
  return file;
}

function supportedArchitecture(): Architecture {
  if (process.arch === "x64" || process.arch === "arm64") return process.arch;
  throw new OwlError("internal", `bubblewrap sandboxes are not supported on ${process.arch}`, {
    hint: "Run the server on x64 or arm64, or without sandboxes: sandbox.enabled: false.",
  });
}

async function canMountImages(): Promise<boolean> {
  const tools = await Promise.all(["mkfs.ext4", "mount", "unshare", "setpriv"].map(findTool));
  const hasLoopDevices = await isThere("/dev/loop-control");
  return hasLoopDevices && tools.every((tool) => tool !== undefined);
}

/** Rejects starts where the kernel does not enforce a limit, unless the configuration accepts that. */
function checkLimits(host: BubblewrapHost, limits: BubblewrapOptions["limits"]): void {
  if (limits === "best-effort") return;
  if (host.controlGroups !== undefined) {
    if (host.privileges?.images !== undefined) return;
    throw new OwlError(
      "resource_limit",
      "the disk space of sandboxes cannot be limited here: workspaces have no file system of their own",
      {
        retryable: false,
        hint: "Start the server as root, or accept weaker limits with --set sandbox.limits=best-effort.",
      },
    );
  }
  throw new OwlError(
    "resource_limit",
    "memory and CPU of sandboxes cannot be limited here: this server may not make control groups",
    {
      retryable: false,
      hint: "Start the server as root or in a session of systemd, or accept weaker limits with --set sandbox.limits=best-effort.",
    },
  );
}
