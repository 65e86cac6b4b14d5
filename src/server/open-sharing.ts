import { randomBytes } from "node:crypto";
import type { Changes } from "../capabilities/changes.ts";
import { ForwardDoor } from "../cluster/forward-door.ts";
import { ForwardSeal } from "../cluster/forward-seal.ts";
import { Forwarder } from "../cluster/forwarder.ts";
import { ServerRegistry } from "../cluster/server-registry.ts";
import type { Config } from "../config/schema.ts";
import { RedisConnection } from "../redis/redis-connection.ts";
import type { Logger } from "../telemetry/logger.ts";
import { SandboxHomes } from "./sandbox-homes.ts";

const ID_BYTES = 9;

export interface SharingOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly changes: Changes;
}

/** What this server has in common with others. */
export interface Sharing {
  readonly connection: RedisConnection;
  readonly cluster: Cluster | undefined;
  close(): Promise<void>;
}

/** This server as one of several. */
export interface Cluster {
  readonly homes: SandboxHomes;
  readonly door: ForwardDoor;
  /** From now on the others find it. */
  announce(listeningUrl: string): Promise<void>;
  /** The others stop looking for it. */
  leave(): Promise<void>;
}

export async function openSharing(options: SharingOptions): Promise<Sharing> {
  const { config, logger } = options;
  const connection = await RedisConnection.open({ url: config.limits.url, logger });
  if (config.cluster.key === "") {
    if (config.transport === "http")
      logger.warning("limits are shared and sandboxes are not: set cluster.key, or let the balancer be sticky");
    return { connection, cluster: undefined, close: async () => connection.close() };
  }
  const { cluster, forwarder } = openCluster(options, connection);
  return {
    connection,
    cluster,
    async close() {
      await cluster.leave();
      forwarder.close();
      connection.close();
    },
  };
}

function openCluster(
  { config, logger, changes }: SharingOptions,
  connection: RedisConnection,
): { readonly cluster: Cluster; readonly forwarder: Forwarder } {
  const serverId = randomBytes(ID_BYTES).toString("base64url");
  const seal = new ForwardSeal(config.cluster.key);
  const registry = new ServerRegistry({ connection, serverId, leaseMs: config.limits.leaseSeconds * 1000 });
  const forwarder = new Forwarder({ seal, registry, logger });
  const timeoutMs = config.tools.timeoutSeconds * 1000;
  const homes = new SandboxHomes({ serverId, forwarder, changes, timeoutMs });
  const door = new ForwardDoor({ seal, serverId, run: (message, signal) => homes.run(message, signal) });
  const announce = async (listeningUrl: string): Promise<void> => {
    const url = config.cluster.url === "" ? listeningUrl : config.cluster.url;
    await registry.announce(url);
    logger.info("joined the cluster", { server: serverId, url });
  };
  return { forwarder, cluster: { homes, door, announce, leave: () => registry.leave() } };
}
