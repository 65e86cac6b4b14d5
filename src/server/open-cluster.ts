import { randomBytes } from "node:crypto";
import type { Changes } from "../capability/registry.ts";
import { ForwardReceiver, type ForwardReceiverOptions } from "../cluster/forward-receiver.ts";
import { ForwardSeal } from "../cluster/forward-seal.ts";
import { Forwarder } from "../cluster/forwarder.ts";
import type { CloseStack } from "../platform/close-stack.ts";
import { ClusterDatabase } from "../cluster/cluster-database.ts";
import { SessionOwners } from "../cluster/session-owners.ts";
import { SessionStore } from "../cluster/session-store.ts";
import { ServerRegistry } from "../cluster/server-registry.ts";
import { TaskOwners } from "../cluster/task-owners.ts";
import type { Config } from "../config/schema.ts";
import type { UsedStates } from "../mcp/request-state.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Tracer } from "../telemetry/tracing/tracer.ts";
import { FileOwners } from "../cluster/file-owners.ts";
import { SandboxOwners } from "../cluster/sandbox-owners.ts";

const ID_BYTES = 9;
const RESUME_MS = 30_000;
const PATIENCE_LEASES = 2;

export interface ClusterOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly changes: Changes;
  readonly tracer?: Tracer | undefined;
}

/** This server as one of several. */
export interface Cluster {
  readonly sandboxOwners: SandboxOwners;
  readonly files: FileOwners;
  readonly sessions: SessionOwners;
  readonly tasks: TaskOwners;
  /** The states of calls that any server has used. */
  readonly usedStates: UsedStates;
  readonly receiver: ForwardReceiver;
  /** From now on the other servers find this one. */
  announce(listeningUrl: string): Promise<void>;
  /** The other servers stop looking for this one. */
  leave(): Promise<void>;
}

/** Through `store.url`, for servers that have a key in common. */
export async function openCluster(stack: CloseStack, options: ClusterOptions): Promise<Cluster | undefined> {
  const { config, logger, changes, tracer } = options;
  if (config.cluster.key === "") {
    if (config.transport === "http")
      logger.warning("limits are shared and sandboxes are not: set cluster.key, or let the balancer be sticky");
    return undefined;
  }
  const database = stack.add(await ClusterDatabase.open(config.store.url));
  const serverId = randomBytes(ID_BYTES).toString("base64url");
  const seal = new ForwardSeal(config.cluster.key);
  const leaseMs = config.limits.leaseSeconds * 1000;
  const store = stack.add(
    new SessionStore({
      database,
      serverId,
      logger,
      clusterKey: config.cluster.key,
      lifeMs: config.http.sessionIdleSeconds * 1000 + leaseMs,
      // A client reconnects as soon as the server is known to be gone.
      endedLifeMs: RESUME_MS + PATIENCE_LEASES * leaseMs,
    }),
  );
  const registry = new ServerRegistry({ database, serverId, leaseMs, onSessionsLost: () => store.writeAgain() });
  const forwarder = stack.add(new Forwarder({ seal, registry, logger }));
  const timeoutMs = config.tools.timeoutSeconds * 1000;
  const sandboxOwners = new SandboxOwners({ serverId, forwarder, changes, timeoutMs, tracer });
  const files = new FileOwners({ serverId, forwarder });
  const sessions = new SessionOwners({ serverId, forwarder, registry, leaseMs, store });
  const tasks = new TaskOwners({ serverId, forwarder, registry });
  const run: ForwardReceiverOptions["run"] = async (message, line) => {
    const { kind, traceId } = message;
    const client = "principal" in message ? message.principal : undefined;
    const label = "label" in message ? message.label : undefined;
    logger.debug("runs a call of another server", { kind, client, label, trace_id: traceId });
    if (kind === "session") return sessions.run(message, line);
    if (kind === "task") return tasks.run(message);
    if (kind === "transfer") return files.run(message);
    return sandboxOwners.run(message, line);
  };
  const receiver = new ForwardReceiver({ seal, serverId, run });
  const announce = async (listeningUrl: string): Promise<void> => {
    const url = config.cluster.url === "" ? listeningUrl : config.cluster.url;
    await registry.announce(url);
    logger.info("joined the cluster", { server: serverId, url });
  };
  const usedStates: UsedStates = { use: (id, lifeMs) => database.useState(id, lifeMs) };
  const leave = (): Promise<void> => registry.leave();
  stack.defer(leave);
  return { sandboxOwners, files, sessions, tasks, usedStates, receiver, announce, leave };
}
