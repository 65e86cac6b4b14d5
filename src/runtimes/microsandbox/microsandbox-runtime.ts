import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";
import { identifyProcess } from "../../processes/identity.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { createDiskImages } from "../bubblewrap/disk-image.ts";
import { createGuestCopies } from "../bubblewrap/guest-copy.ts";
import { openRecords } from "../bubblewrap/records.ts";
import { openOwnership } from "../docker/ownership.ts";
import { isThere } from "../is-there.ts";
import { draftName } from "../replace-file.ts";
import type { Runtime, TemplateTree } from "../runtime.ts";
import { checkBelow } from "../start-request.ts";
import type { MachineCell } from "./machine-cell.ts";
import { type MachineHost, serverFolders } from "./machine-host.ts";
import { probeMachine } from "./probe.ts";
import { reapDeadServers, removeServerFolders } from "./reap.ts";
import type { MicrosandboxSdk } from "./sdk.ts";
import { startMachine } from "./start-machine.ts";

/** A machine outlives the longest sandbox by this: it is for servers that forgot it. */
const BACKSTOP_SECONDS = 3600;

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
  /** Most that a sandbox may live. */
  readonly maxAgeSeconds: number;
}

/** Cells that are microVMs. */
export async function createMicrosandboxRuntime(options: MicrosandboxOptions): Promise<Runtime> {
  const { dataFolder, serverId, logger } = options;
  const stateFolder = join(dataFolder, "microsandbox");
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const guests = createGuestCopies(join(stateFolder, "guests"));
  const host = await createHost(options, {
    stateFolder,
    guestFolder: await guests.make(serverId, options.guestFolder),
  });
  await host.records.writeServer({ serverId, owner: host.records.owner, groups: [] });
  const cells = new Map<string, MachineCell>();
  let isClosed = false;
  return {
    name: "microsandbox",
    probe: async (signal) => await probeMachine(host, signal),
    start: async (spec, signal) => {
      if (isClosed) throw new OwlError("shutting_down", "the sandbox runtime is closed");
      // Two machines on one disk would destroy it: the one before must be gone.
      await cells.get(spec.folder)?.stop();
      const cell = await startMachine(host, { spec, signal });
      cells.set(spec.folder, cell);
      return cell;
    },
    discard: async (folder) => {
      checkBelow(dataFolder, folder);
      await cells.get(folder)?.stop();
      cells.delete(folder);
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      await host.records.removeCellsOf(folder);
    },
    reap: async () => ({ removed: await reapDeadServers(host, options.keepsWorkspaces ?? false) }),
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      const stopped = await Promise.allSettled([...cells.values()].map(async (cell) => await cell.stop()));
      for (const { reason } of stopped.filter((each) => each.status === "rejected")) {
        logger.error("a microVM is left for the next server to remove", { error: reason });
      }
      await removeServerFolders(stateFolder, serverId);
      await host.records.removeServer(serverId);
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
    throw new OwlError("sandbox_unavailable", "microVMs need Linux: what a dead server left is found by /proc", {
      hint: "Set sandbox.runtime to docker.",
    });
  }
  return {
    sdk,
    logger,
    dataFolder,
    stateFolder,
    linesFolder: serverFolders(stateFolder, serverId).lines,
    ownership: await openOwnership(stateFolder, serverId),
    records: await openRecords(stateFolder, owner),
    disks: createDiskImages(join(stateFolder, "disks")),
    imageOf,
    templates,
    guestFolder,
    nodeFolder: await provideNode(join(stateFolder, "node")),
    maxDurationSeconds: maxAgeSeconds + BACKSTOP_SECONDS,
  };
}

/** A folder with nothing but this server's Node: machines have the same kind of processor. */
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
