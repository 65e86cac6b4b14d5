import { access, constants, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { replaceFile } from "../replace-file.ts";
import type { Runtime, TemplateTree } from "../runtime.ts";
import { checkBelow } from "../start-request.ts";
import { createWorkspaceWatch } from "../workspace-watch.ts";
import type { DockerCell } from "./docker-cell.ts";
import type { DockerHost } from "./docker-host.ts";
import { parseEngineAddress } from "./engine-address.ts";
import { EngineClient } from "./engine-client.ts";
import { type EngineFacts, readEngineFacts } from "./engine-facts.ts";
import { watchEngine } from "./engine-watch.ts";
import { Images } from "./images.ts";
import { openOwnership } from "./ownership.ts";
import { probeDocker } from "./probe.ts";
import { discardVolume, reapDeadServers, removeStrays } from "./reap.ts";
import { seccompProfile } from "./seccomp-profile.ts";
import { startContainer } from "./start-container.ts";

const CONTACT_TIMEOUT_MS = 10_000;

export interface DockerOptions {
  readonly dataFolder: string;
  readonly logger: Logger;
  /** Folder of the host with `guest.mjs` and the Python drivers. */
  readonly guestFolder: string;
  /** Letters, digits, `-` and `_`; unique among all servers. */
  readonly serverId: string;
  /** As in DOCKER_HOST; empty: the machine's own Docker. */
  readonly host: string;
  /** With ca.pem, cert.pem and key.pem; empty: no TLS. */
  readonly certFolder: string;
  /** `runsc` and the like; empty: the engine's default. */
  readonly ociRuntime: string;
  readonly imageOf: (template: string) => string;
  readonly templates?: Readonly<Record<string, TemplateTree>>;
  readonly keepsWorkspaces?: boolean;
  /** How long the engine may take for its first answer. */
  readonly contactTimeoutMs?: number;
}

/** Cells that are containers of Docker or Podman. */
export async function createDockerRuntime(options: DockerOptions): Promise<Runtime> {
  const host = await createHost(options);
  const cells = new Set<DockerCell>();
  let isClosed = false;
  const { logger } = options;
  const watch = watchEngine(host.engine, {
    onLost: (error) => logger.error("the container engine is gone", { reason: error.message }),
    onBack: async () => {
      await removeStrays(host);
      logger.info("the container engine is back", { engine: host.engine.name });
    },
  });
  return {
    name: "docker",
    probe: async (signal) => await probeDocker(host, signal),
    start: async (spec, signal) => {
      if (isClosed) throw new OwlError("shutting_down", "the sandbox runtime is closed");
      const cell = await startContainer(host, { spec, signal });
      cells.add(cell);
      void cell.exited.then(() => cells.delete(cell));
      return cell;
    },
    discard: async (folder) => {
      checkBelow(options.dataFolder, folder);
      await discardVolume(host, host.ownership.volumeName(folder));
    },
    reap: async () => ({ removed: await reapDeadServers(host, options.keepsWorkspaces ?? false) }),
    trouble: () => watch.trouble,
    close: async () => {
      isClosed = true;
      watch.close();
      await Promise.all([...cells].map(async (cell) => await cell.stop()));
      host.workspaceWatch.close();
    },
  };
}

async function createHost(options: DockerOptions): Promise<DockerHost> {
  const { dataFolder, logger, serverId, guestFolder, templates = {}, imageOf, ociRuntime } = options;
  const engine = new EngineClient(parseEngineAddress(options.host, options.certFolder));
  const facts = await readEngineFacts(engine, options.contactTimeoutMs ?? CONTACT_TIMEOUT_MS);
  const stateFolder = join(dataFolder, "docker");
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const ownership = await openOwnership(stateFolder, serverId);
  const seccomp = await seccompOption(stateFolder, facts);
  logger.info("container engine found", { engine: engine.name, kind: facts.kind, version: facts.version });
  const given = { logger, dataFolder, stateFolder, ociRuntime, imageOf, templates };
  return {
    ...given,
    engine,
    facts,
    ownership,
    seccomp,
    images: new Images({ engine, facts, guestFolder, seccomp }),
    workspaceWatch: createWorkspaceWatch(),
    watchesWorkspaces: await canReadVolumes(engine, facts),
    isRemote: engine.address.kind !== "socket",
    prepared: new Set(),
    own: new Set(),
    leftovers: new Set(),
    leftVolumes: new Set(),
  };
}

/** Docker takes the profile itself; Podman reads a file, which must be on its machine. */
async function seccompOption(stateFolder: string, { kind, architecture }: EngineFacts): Promise<string> {
  const profile = seccompProfile(architecture);
  if (kind === "docker") return profile;
  const file = join(stateFolder, "seccomp.json");
  await replaceFile(file, profile, 0o644);
  return file;
}

async function canReadVolumes({ address }: EngineClient, { rootFolder }: EngineFacts): Promise<boolean> {
  if (address.kind !== "socket" || rootFolder === "") return false;
  return await access(rootFolder, constants.R_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
}
