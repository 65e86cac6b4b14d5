import { join } from "node:path";
import { Changes } from "../capabilities/changes.ts";
import { Registry } from "../capabilities/registry.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { loadHandlers } from "../handlers/load-handlers.ts";
import { Pipeline } from "../pipeline/pipeline.ts";
import { Mcp } from "../protocol/mcp.ts";
import type { FileTransfer } from "../sandbox/file-transfer.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { OperatorDesk } from "../transports/http/operator-api.ts";
import type { ControlSocket } from "./control-socket.ts";
import type { OpenGovernance } from "./open-governance.ts";
import type { OpenRuntime } from "./open-runtime.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import type { SandboxLayer } from "./sandbox-layer.ts";

export interface Assembly {
  readonly mcp: Mcp;
  /** Files of sandboxes, in and out. */
  readonly files: FileTransfer | undefined;
  /** Ledger, statistics and approvals. */
  readonly operators: { readonly desk: OperatorDesk; readonly ledger: Ledger } | undefined;
  /** Brings up what calls need, before the door opens. */
  start(): Promise<void>;
  /** Lets the operator's commands look in; for servers that stay. */
  openControl(): Promise<void>;
  close(): Promise<void>;
}

export interface AssembleOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly openRuntime?: OpenRuntime | undefined;
  /** Where the configuration came from, so that a changed policy can be read again. */
  readonly loaded?: Pick<LoadedConfig, "file" | "reload"> | undefined;
  /** false only in the benchmark that measures what governance costs. */
  readonly isGoverned?: boolean;
  /** Default: yes. */
  readonly withPool?: boolean;
}

/** Wires everything behind the transports. What is started here is stopped by `close`, in reverse. */
export async function assemble(options: AssembleOptions): Promise<Assembly> {
  const { config, logger } = options;
  const registry = new Registry();
  const changes = new Changes();
  const { governance, layer, files } = await openParts(registry, options);
  const pipeline = new Pipeline({
    registry,
    governance,
    timeoutMs: config.tools.timeoutSeconds * 1000,
    progressAfterMs: config.tools.progressAfterSeconds * 1000,
    maxResultChars: config.tools.maxResultChars,
  });
  const serverInfo = { name: "owlclaw", title: "OwlClaw", version: PACKAGE_VERSION };
  const mcp = new Mcp({ pipeline, changes, logger, serverInfo, withStack: config.mode === "development" });
  const unfollow = governance?.governor.onPolicyChange(() => {
    for (const list of ["tools", "resources", "prompts"] as const) changes.listChanged(list);
  });
  let control: ControlSocket | undefined;
  const watching = new AbortController();
  watchResources(registry, { changes, logger, signal: watching.signal });
  return {
    mcp,
    files,
    operators: governance === undefined ? undefined : { desk: deskOf(governance), ledger: governance.ledger },
    start: async () => layer?.start(),
    openControl: async () => {
      governance?.watch();
      const { openControlSocket } = await import("./control-socket.ts");
      const sandboxes = layer?.services.sandboxes;
      control = await openControlSocket({ dataFolder: config.sandbox.root, sandboxes, governance, logger });
    },
    async close() {
      await control?.close();
      watching.abort();
      unfollow?.();
      mcp.close();
      await layer?.close();
      await governance?.close();
    },
  };
}

/** Governance is opened beside everything else, since disks take their time; when one of the two fails, the other is closed. */
async function openParts(registry: Registry, options: AssembleOptions): Promise<SandboxPart & GovernancePart> {
  const { isGoverned = true } = options;
  const [opened, loaded] = await Promise.allSettled([
    isGoverned ? openGoverned(options) : undefined,
    loadCapabilities(registry, options),
  ]);
  if (loaded.status === "rejected") {
    if (opened.status === "fulfilled") await opened.value?.close();
    throw loaded.reason;
  }
  if (opened.status === "rejected") {
    await loaded.value.layer?.close();
    throw opened.reason;
  }
  return { ...loaded.value, governance: opened.value };
}

interface GovernancePart {
  readonly governance: OpenGovernance | undefined;
}

async function loadCapabilities(registry: Registry, options: AssembleOptions): Promise<SandboxPart> {
  const { config, logger } = options;
  const part = config.sandbox.enabled ? await addSandboxes(registry, options) : NO_SANDBOXES;
  const cacheFolder = join(config.sandbox.root, "cache", "handlers");
  const { problems } = await loadHandlers(registry, { paths: config.handlers.paths, cacheFolder });
  for (const { file, message, error } of problems)
    logger.error("handler file cannot be used", { file, reason: message, error });
  return part;
}

function watchResources(
  registry: Registry,
  { changes, logger, signal }: { readonly changes: Changes; readonly logger: Logger; readonly signal: AbortSignal },
): void {
  for (const { definition } of registry.resources()) {
    try {
      definition.watch?.(() => changes.resourceUpdated(definition.uri), signal);
    } catch (error) {
      logger.error("resource cannot be watched", { uri: definition.uri, error });
    }
  }
}

async function openGoverned({ config, logger, loaded }: AssembleOptions): Promise<OpenGovernance> {
  const { openGovernance } = await import("./open-governance.ts");
  return openGovernance({ config, logger, loaded });
}

function deskOf(governance: OpenGovernance): OperatorDesk {
  return {
    approvals: () => governance.governor.approvals.list(),
    decide: async (decision) => (await import("./operator-requests.ts")).decideApproval(governance, decision),
    stats: (filter) => governance.ledger.reader.stats(filter),
  };
}

interface SandboxPart {
  readonly layer: SandboxLayer | undefined;
  readonly files: FileTransfer | undefined;
}

const NO_SANDBOXES: SandboxPart = { layer: undefined, files: undefined };

/** Loaded here, since a server without sandboxes need not wait for their code. */
async function addSandboxes(registry: Registry, options: AssembleOptions): Promise<SandboxPart> {
  const { config, logger, withPool = true } = options;
  const [{ createSandboxLayer }, { registerBuiltIns }, { openRuntime }, { FileTransfer }] = await Promise.all([
    import("./sandbox-layer.ts"),
    import("./register-built-ins.ts"),
    import("./open-runtime.ts"),
    import("../sandbox/file-transfer.ts"),
  ]);
  const layer = createSandboxLayer({ config, logger, openRuntime: options.openRuntime ?? openRuntime, withPool });
  const { sandboxes } = layer.services;
  const { workspace: workspacePath } = config.sandbox;
  const files = new FileTransfer({ sandboxes, workspacePath, maxFrameBytes: config.guest.maxFrameBytes });
  registerBuiltIns(registry, config, layer.services);
  return { layer, files };
}
