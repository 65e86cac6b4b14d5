import { access, constants, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { OwlError, toOwlError } from "../../../errors/owl-error.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import { provideEmptyPaths } from "../instance-mounts.ts";
import { replaceFile } from "../host-files.ts";
import type { Runtime, TemplateTree } from "../runtime.ts";
import { checkBelow } from "../start-request.ts";
import { StartProblems } from "../start-problems.ts";
import { createWorkspaceWatch } from "../workspace-watch.ts";
import type { DockerInstance } from "./docker-instance.ts";
import type { DockerHost } from "./docker-host.ts";
import { parseEngineAddress } from "./engine-address.ts";
import { EngineClient } from "./engine-client.ts";
import {
  type EngineFacts,
  readEngineFacts,
  isRemote,
  refuseRemotePodman,
  refuseRemoteVolumes,
  refuseIgnoredOciRuntime,
} from "./engine-facts.ts";
import { Images } from "./images.ts";
import { discardVolume, reapDeadServers, removeStrays, PendingRemovals } from "./reap.ts";
import { openOwnership } from "./ownership.ts";
import { probeDocker, tryContainer } from "./probe.ts";
import { seccompProfile } from "./seccomp-profile.ts";
import { startContainer } from "./start-container.ts";

const CONTACT_TIMEOUT_MS = 30_000;
const PING_INTERVAL_MS = 2000;
const PING_TIMEOUT_MS = 10_000;

export interface DockerOptions {
  readonly dataFolder: string;
  readonly logger: Logger;
  /** Folder of the host with `guest.mjs` and the Python drivers. */
  readonly guestFolder: string;
  /** Letters, digits, `-` and `_`; unique among all servers. */
  readonly serverId: string;
  /** As in DOCKER_HOST; empty: Docker on this machine. */
  readonly host: string;
  /** With ca.pem, cert.pem and key.pem; empty: no TLS. */
  readonly certFolder: string;
  /** Such as `runsc`; empty: the engine's default. */
  readonly ociRuntime: string;
  readonly imageOf: (template: string) => string;
  readonly templates?: Readonly<Record<string, TemplateTree>>;
  /** Whether folders of this machine are mounted in sandboxes. */
  readonly hasVolumes?: boolean;
  readonly keepsWorkspaces?: boolean;
  /** How long the engine may take to describe itself. */
  readonly contactTimeoutMs?: number;
}

/** Instances are containers of Docker or Podman. */
export async function createDockerRuntime(options: DockerOptions): Promise<Runtime> {
  const host = await createHost(options);
  const instances = new Set<DockerInstance>();
  let isClosed = false;
  const { logger } = options;
  const startProblems = new StartProblems({ imageOf: host.imageOf, tryStart: (trial) => tryContainer(host, trial) });
  const removals = new PendingRemovals(host);
  const watch = watchEngine(host.engine, {
    onLost: (error) => logger.error("the container engine is gone", { reason: error.message }),
    onBack: async () => {
      await removeStrays(host);
      logger.info("the container engine is back", { engine: host.engine.name });
    },
    onThere: async () => {
      if (host.doubt.isThere) await removeStrays(host);
      removals.tryAgain();
      await startProblems.tryAgain();
    },
  });
  return {
    name: "docker",
    probe: async (signal, template = "") =>
      await probeDocker({ ...host, imageOf: () => host.imageOf(template) }, signal),
    start: async (spec, signal) => {
      if (isClosed) throw new OwlError("shutting_down", "the sandbox runtime is closed");
      const instance = await startContainer(host, { spec, signal }).catch((error: unknown) => {
        startProblems.onFailed(spec.template, error);
        throw error;
      });
      startProblems.onStarted(spec.template);
      instances.add(instance);
      void instance.exited.then(() => instances.delete(instance));
      return instance;
    },
    discard: async (folder) => await discardWorkspace(host, options.dataFolder, folder),
    left: () => host.leftVolumes.size,
    reap: async () => ({ removed: await reapDeadServers(host, options.keepsWorkspaces ?? false) }),
    problem: () => (watch.problem === undefined ? startProblems.problem : { error: watch.problem }),
    close: async () => {
      isClosed = true;
      startProblems.close();
      await watch.close();
      await Promise.all([...instances].map(async (instance) => await instance.stop()));
      if (watch.problem === undefined) await removals.tryForTheLastTime();
      host.workspaceWatch.close();
    },
  };
}

async function discardWorkspace(host: DockerHost, dataFolder: string, folder: string): Promise<boolean> {
  checkBelow(dataFolder, folder);
  return await discardVolume(host, host.ownership.volumeName(folder));
}

async function createHost(options: DockerOptions): Promise<DockerHost> {
  const { dataFolder, logger, serverId, guestFolder, templates = {}, imageOf, ociRuntime } = options;
  const engine = new EngineClient(parseEngineAddress(options.host, options.certFolder));
  if (options.hasVolumes === true) refuseRemoteVolumes(engine);
  const facts = await readEngineFacts(engine, options.contactTimeoutMs ?? CONTACT_TIMEOUT_MS);
  refuseRemotePodman(engine, facts);
  refuseIgnoredOciRuntime(ociRuntime, facts);
  const stateFolder = join(dataFolder, "docker");
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
  const ownership = await openOwnership(stateFolder, serverId);
  const seccomp = await seccompOption(stateFolder, facts);
  logger.info("container engine found", { engine: engine.name, kind: facts.kind, version: facts.version });
  const given = { logger, dataFolder, stateFolder, ociRuntime, imageOf, templates };
  const known = { own: new Set<string>(), making: new Set<Promise<unknown>>(), doubt: { isThere: false } };
  const containers = { engine, ownership, logger, ...known, leftovers: new Set<string>() };
  return {
    ...given,
    ...containers,
    facts,
    seccomp,
    empty: await provideEmptyPaths(stateFolder),
    images: new Images({ host: containers, facts, guestFolder, seccomp }),
    workspaceWatch: createWorkspaceWatch(),
    watchesWorkspaces: await canReadVolumes(engine, facts),
    isRemote: isRemote(engine),
    prepared: new Set(),
    leftVolumes: new Set(),
  };
}

/** Docker takes the profile itself; Podman reads a file on its machine. */
async function seccompOption(stateFolder: string, { kind, architecture }: EngineFacts): Promise<string> {
  const profile = seccompProfile(architecture);
  if (kind === "docker") return profile;
  const file = join(stateFolder, "seccomp.json");
  await replaceFile(file, profile, 0o644);
  return file;
}

async function canReadVolumes(engine: EngineClient, { rootFolder }: EngineFacts): Promise<boolean> {
  if (isRemote(engine) || rootFolder === "") return false;
  return await access(rootFolder, constants.R_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
}

export interface EngineWatch {
  /** Why the engine cannot be used at the moment. */
  readonly problem: OwlError | undefined;
  /** Resolves when the last ping has ended. */
  close(): Promise<void>;
}

export interface EngineWatchOptions {
  readonly onLost: (error: OwlError) => void;
  readonly onBack: () => Promise<void>;
  /** After every successful ping. */
  readonly onThere: () => Promise<void>;
}

/** Pings the engine and reports when it is lost and when it is back. */
export function watchEngine(engine: EngineClient, { onLost, onBack, onThere }: EngineWatchOptions): EngineWatch {
  let problem: OwlError | undefined;
  let asking: Promise<void> | undefined;
  const ask = async (): Promise<void> => {
    try {
      await engine.call({ method: "GET", path: "/_ping", timeoutMs: PING_TIMEOUT_MS });
      if (problem !== undefined) await onBack();
      problem = undefined;
      await onThere();
    } catch (thrown) {
      if (problem === undefined) onLost(toOwlError(thrown, "sandbox_unavailable"));
      problem = toOwlError(thrown, "sandbox_unavailable");
    }
  };
  const timer = setInterval(() => {
    asking ??= ask().finally(() => (asking = undefined));
  }, PING_INTERVAL_MS).unref();
  return {
    get problem() {
      return problem;
    },
    close: async () => {
      clearInterval(timer);
      await asking;
    },
  };
}
