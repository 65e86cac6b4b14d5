import { randomBytes } from "node:crypto";
import type { Changes } from "../capability/changes.ts";
import { ForwardDoor, type ForwardDoorOptions } from "../cluster/forward-door.ts";
import { ForwardSeal } from "../cluster/forward-seal.ts";
import { Forwarder } from "../cluster/forwarder.ts";
import { openPostgresDirectory, redisDirectory, type ServerDirectory } from "../cluster/server-directory.ts";
import { SessionHomes } from "../cluster/session-homes.ts";
import { SessionStore } from "../cluster/session-store.ts";
import { SharedStates } from "../cluster/shared-states.ts";
import { ServerRegistry } from "../cluster/server-registry.ts";
import { TaskHomes } from "../cluster/task-homes.ts";
import type { Config } from "../config/schema.ts";
import { RedisConnection } from "../platform/redis-connection.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Tracer } from "../telemetry/tracing/tracer.ts";
import { FileHomes } from "./file-homes.ts";
import { SandboxHomes } from "./sandbox-homes.ts";

const ID_BYTES = 9;
const RESUME_MS = 30_000;
const PATIENCE_LEASES = 2;

export interface SharingOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly changes: Changes;
  readonly tracer?: Tracer | undefined;
}

/** What this server has in common with others. */
export interface Sharing {
  readonly cluster: Cluster | undefined;
  close(): Promise<void>;
}

/** This server as one of several. */
export interface Cluster {
  readonly homes: SandboxHomes;
  readonly files: FileHomes;
  readonly sessions: SessionHomes;
  readonly tasks: TaskHomes;
  /** Which states of calls were used at any of the servers; only Redis knows. */
  readonly usedStates: SharedStates | undefined;
  readonly door: ForwardDoor;
  /** From now on the others find it. */
  announce(listeningUrl: string): Promise<void>;
  /** The others stop looking for it. */
  leave(): Promise<void>;
}

/** In Redis if there is one, or else in the store. */
export async function openSharing(options: SharingOptions): Promise<Sharing> {
  const { config, logger } = options;
  const place = await (config.limits.url === "" ? openPostgresPlace(config) : openRedisPlace(config, logger));
  const { directory } = place;
  if (directory === undefined) {
    if (config.transport === "http")
      logger.warning("limits are shared and sandboxes are not: set cluster.key, or let the balancer be sticky");
    return { cluster: undefined, close: () => place.close() };
  }
  const { cluster, forwarder, store } = openCluster(options, directory, place);
  return {
    cluster,
    async close() {
      await cluster.leave();
      forwarder.close();
      await store?.close();
      await place.close();
    },
  };
}

interface SharedPlace {
  /** Where servers find each other, if they have a key in common. */
  readonly directory: ServerDirectory | undefined;
  /** Where sessions survive their server; only Redis keeps them. */
  readonly storeFor?: (serverId: string) => SessionStore;
  readonly usedStates?: SharedStates;
  close(): Promise<void>;
}

async function openRedisPlace({ limits, cluster, http }: Config, logger: Logger): Promise<SharedPlace> {
  const connection = await RedisConnection.open({ url: limits.url, logger });
  const leaseMs = limits.leaseSeconds * 1000;
  return {
    directory: cluster.key === "" ? undefined : redisDirectory(connection),
    storeFor: (serverId) =>
      new SessionStore({
        connection,
        serverId,
        clusterKey: cluster.key,
        lifeMs: http.sessionIdleSeconds * 1000 + leaseMs,
        // A client comes back as soon as the server is known to be gone.
        endedLifeMs: RESUME_MS + PATIENCE_LEASES * leaseMs,
      }),
    usedStates: new SharedStates(connection),
    close: async () => connection.close(),
  };
}

async function openPostgresPlace({ store, cluster }: Config): Promise<SharedPlace> {
  if (cluster.key === "") return { directory: undefined, close: async () => undefined };
  const directory = await openPostgresDirectory(store.url);
  return { directory, close: () => directory.close() };
}

function openCluster(
  { config, logger, changes, tracer }: SharingOptions,
  directory: ServerDirectory,
  { storeFor, usedStates }: SharedPlace,
): { readonly cluster: Cluster; readonly forwarder: Forwarder; readonly store: SessionStore | undefined } {
  const serverId = randomBytes(ID_BYTES).toString("base64url");
  const seal = new ForwardSeal(config.cluster.key);
  const leaseMs = config.limits.leaseSeconds * 1000;
  const registry = new ServerRegistry({ directory, serverId, leaseMs });
  const forwarder = new Forwarder({ seal, registry, logger });
  const timeoutMs = config.tools.timeoutSeconds * 1000;
  const homes = new SandboxHomes({ serverId, forwarder, changes, timeoutMs, tracer });
  const files = new FileHomes({ serverId, forwarder });
  const store = storeFor?.(serverId);
  const sessions = new SessionHomes({ serverId, forwarder, registry, leaseMs, store });
  const tasks = new TaskHomes({ serverId, forwarder, registry });
  const run: ForwardDoorOptions["run"] = async (message, line) => {
    const { kind, traceId } = message;
    const client = "principal" in message ? message.principal : undefined;
    const label = "label" in message ? message.label : undefined;
    logger.debug("runs a call of another server", { kind, client, label, trace_id: traceId });
    if (kind === "session") return sessions.run(message, line);
    if (kind === "task") return tasks.run(message);
    if (kind === "transfer") return files.run(message);
    return homes.run(message, line);
  };
  const door = new ForwardDoor({ seal, serverId, run });
  const announce = async (listeningUrl: string): Promise<void> => {
    const url = config.cluster.url === "" ? listeningUrl : config.cluster.url;
    await registry.announce(url);
    logger.info("joined the cluster", { server: serverId, url });
  };
  const leave = (): Promise<void> => registry.leave();
  return { forwarder, store, cluster: { homes, files, sessions, tasks, usedStates, door, announce, leave } };
}
