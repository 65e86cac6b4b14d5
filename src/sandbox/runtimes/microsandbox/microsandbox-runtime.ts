import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import { identifyProcess } from "../../../platform/process-identity.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import { createDiskImages } from "../bubblewrap/disk-image.ts";
import { createGuestCopies } from "../bubblewrap/guest-copy.ts";
import { openRecords } from "../bubblewrap/records.ts";
import { openOwnership } from "../docker/ownership.ts";
import { draftName, isThere } from "../host-files.ts";
import type { Runtime, TemplateTree } from "../runtime.ts";
import { checkBelow } from "../start-request.ts";
import { StartProblems } from "../start-problems.ts";
import { type MachineHost, serverFolders } from "./machine-host.ts";
import { probeMachine, tryMachine } from "./probe.ts";
import { reapDeadServers, removeServerFolders } from "./reap.ts";
import type { MicrosandboxSdk } from "./sdk.ts";
import { startMachine } from "./start-machine.ts";
import type { MachineInstance } from "./machine-instance.ts";

/** A machine ends by itself this long after the maximum age of a sandbox, in case the server does not end it. */
const EXTRA_SECONDS = 3600;
/** The time in the pool counts towards the end of a machine. Half of the extra time is left for extensions of the sandbox. */
const MAX_WAIT_MS = (EXTRA_SECONDS / 2) * 1000;
const TRY_AGAIN_MS = 5000;

export interface MicrosandboxOptions {
  readonly sdk: MicrosandboxSdk;
  readonly dataFolder: string;
  readonly logger: Logger;
  /** Folder of the host with `guest.mjs` and the Python drivers. */
  readonly guestFolder: string;
  /** Letters, digits, `-` and `_`; unique among all servers. */
  readonly serverId: string;
  readonly imageOf: (template: string) => string;
  readonly templates?: Readonly<Record<string, TemplateTree>>;
  readonly keepsWorkspaces?: boolean;
  /** The maximum age of a sandbox. */
  readonly maxAgeSeconds: number;
}

/** Instances are microVMs of microsandbox. */
export async function createMicrosandboxRuntime(options: MicrosandboxOptions): Promise<Runtime> {
  const { dataFolder, serverId } = options;
  const stateFolder = join(dataFolder, "microsandbox");
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const guests = createGuestCopies(join(stateFolder, "guests"));
  const host = await createHost(options, {
    stateFolder,
    guestFolder: await guests.make(serverId, options.guestFolder),
  });
  await host.records.writeServer({ serverId, owner: host.records.owner, groups: [] });
  const instances = new MachineInstances(host);
  const startProblems = new StartProblems({ imageOf: host.imageOf, tryStart: (trial) => tryMachine(host, trial) });
  const again = repeat(async () => {
    await instances.tryAgain();
    await startProblems.tryAgain();
  }, TRY_AGAIN_MS);
  let isClosed = false;
  return {
    name: "microsandbox",
    maxWaitMs: MAX_WAIT_MS,
    probe: async (signal, template = "") =>
      await probeMachine({ ...host, imageOf: () => host.imageOf(template) }, signal),
    start: async (spec, signal) => {
      if (isClosed) throw new OwlError("shutting_down", "the sandbox runtime is closed");
      await instances.clear(spec.folder);
      const instance = await startMachine(host, { spec, signal }).catch((error: unknown) => {
        startProblems.onFailed(spec.template, error);
        throw error;
      });
      startProblems.onStarted(spec.template);
      instances.add(spec.folder, instance);
      return instance;
    },
    discard: async (folder) => {
      checkBelow(dataFolder, folder);
      return await instances.discard(folder);
    },
    reap: async () => ({ removed: await reapDeadServers(host, options.keepsWorkspaces ?? false) }),
    problem: () => startProblems.problem,
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      startProblems.close();
      await again.stop();
      await instances.close();
      await removeServerFolders(stateFolder, serverId);
      await host.records.removeServer(serverId);
    },
  };
}

/** Calls `work` regularly until it is stopped, never twice at the same time. */
function repeat(work: () => Promise<void>, everyMs: number): { stop(): Promise<void> } {
  let working: Promise<void> | undefined;
  const timer = setInterval(() => {
    working ??= work().finally(() => (working = undefined));
  }, everyMs).unref();
  return {
    stop: async () => {
      clearInterval(timer);
      await working;
    },
  };
}

async function createHost(
  options: MicrosandboxOptions,
  { stateFolder, guestFolder }: Pick<MachineHost, "stateFolder" | "guestFolder">,
): Promise<MachineHost> {
  const { sdk, logger, dataFolder, serverId, imageOf, templates = {}, maxAgeSeconds } = options;
  const owner = identifyProcess(process.pid);
  if (owner === undefined) {
    throw new OwlError("sandbox_unavailable", "microVMs need Linux with /proc", {
      hint: "Set sandbox.runtime to docker.",
    });
  }
  return {
    sdk,
    logger,
    dataFolder,
    stateFolder,
    socketsFolder: serverFolders(stateFolder, serverId).sockets,
    ownership: await openOwnership(stateFolder, serverId),
    records: await openRecords(stateFolder, owner),
    disks: createDiskImages(join(stateFolder, "disks")),
    imageOf,
    templates,
    guestFolder,
    nodeFolder: await provideNode(join(stateFolder, "node")),
    maxDurationSeconds: maxAgeSeconds + EXTRA_SECONDS,
    left: new Set(),
  };
}

/** A folder with this server's Node only: machines have the same processor architecture. */
async function provideNode(parent: string): Promise<string> {
  const name = createHash("sha256").update(`${process.version} ${process.execPath}`).digest("hex").slice(0, 16);
  const folder = join(parent, name);
  if (await isThere(join(folder, "node"))) return folder;
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const draft = draftName(join(folder, "node"));
  await copyFile(process.execPath, draft);
  await chmod(draft, 0o755);
  await rename(draft, join(folder, "node"));
  return folder;
}

/** The machines of this server, by the folder of their workspace. */
export class MachineInstances {
  readonly #host: MachineHost;
  readonly #instances = new Map<string, MachineInstance>();
  /** Workspaces whose removal has failed. */
  readonly #unremoved = new Set<string>();

  constructor(host: MachineHost) {
    this.#host = host;
  }

  /** Removes the machine on the workspace, or rejects: two machines on one disk would destroy its file system. */
  async clear(folder: string): Promise<void> {
    const instance = this.#instances.get(folder);
    instance?.end("stopped");
    try {
      await instance?.remove();
      await instance?.stop();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new OwlError("sandbox_unavailable", `the microVM of this workspace cannot be removed: ${reason}`, {
        retryable: true,
        hint: "Call again in a moment; microsandbox keeps its logs in ~/.microsandbox.",
        cause,
      });
    }
  }

  add(folder: string, instance: MachineInstance): void {
    this.#instances.set(folder, instance);
  }

  /** Removes the workspace and its machine. A failed removal is retried. */
  async discard(folder: string): Promise<boolean> {
    try {
      await this.clear(folder);
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      await this.#host.records.removeInstancesOf(folder);
      this.#instances.delete(folder);
      this.#unremoved.delete(folder);
      return true;
    } catch (error) {
      this.#unremoved.add(folder);
      throw error;
    }
  }

  /** Retries failed removals. Failures are logged when they happen first. */
  async tryAgain(): Promise<void> {
    await Promise.allSettled([...this.#host.left].map((machine) => machine.remove()));
    await Promise.allSettled([...this.#unremoved].map((folder) => this.discard(folder)));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#instances.values()].map((instance) => instance.stop()));
    await this.tryAgain();
    const { left, logger } = this.#host;
    if (left.size > 0) logger.error("microVMs are left for the next server to remove", { machines: left.size });
  }
}
