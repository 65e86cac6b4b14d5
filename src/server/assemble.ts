import { join } from "node:path";
import { Changes } from "../capabilities/changes.ts";
import { Registry } from "../capabilities/registry.ts";
import type { Config } from "../config/schema.ts";
import { loadHandlers } from "../handlers/load-handlers.ts";
import { Pipeline } from "../pipeline/pipeline.ts";
import { Mcp } from "../protocol/mcp.ts";
import type { FileTransfer } from "../sandbox/file-transfer.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ControlSocket } from "./control-socket.ts";
import type { OpenRuntime } from "./open-runtime.ts";
import type { OperatorSandboxes } from "./operator-sandboxes.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";

export interface Assembly {
  readonly mcp: Mcp;
  /** Files of sandboxes, in and out. */
  readonly files: FileTransfer | undefined;
  /** Everybody's sandboxes, for operators. */
  readonly operator: OperatorSandboxes | undefined;
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
  /** Default: yes. */
  readonly withPool?: boolean;
}

/** Wires everything behind the transports. What is started here is stopped by `close`, in reverse. */
export async function assemble(options: AssembleOptions): Promise<Assembly> {
  const { config, logger } = options;
  const registry = new Registry();
  const changes = new Changes();
  const { layer, files, operator } = config.sandbox.enabled ? await addSandboxes(registry, options) : NO_SANDBOXES;
  const cacheFolder = join(config.sandbox.root, "cache", "handlers");
  const { problems } = await loadHandlers(registry, { paths: config.handlers.paths, cacheFolder });
  for (const { file, message, error } of problems)
    logger.error("handler file cannot be used", { file, reason: message, error });
  const pipeline = new Pipeline({
    registry,
    timeoutMs: config.tools.timeoutSeconds * 1000,
    progressAfterMs: config.tools.progressAfterSeconds * 1000,
    maxResultChars: config.tools.maxResultChars,
  });
  const serverInfo = { name: "owlclaw", title: "OwlClaw", version: PACKAGE_VERSION };
  const mcp = new Mcp({ pipeline, changes, logger, serverInfo, withStack: config.mode === "development" });
  let control: ControlSocket | undefined;
  const watching = new AbortController();
  for (const { definition } of registry.resources()) {
    try {
      definition.watch?.(() => changes.resourceUpdated(definition.uri), watching.signal);
    } catch (error) {
      logger.error("resource cannot be watched", { uri: definition.uri, error });
    }
  }
  return {
    mcp,
    files,
    operator,
    start: async () => layer?.start(),
    openControl: async () => {
      if (operator === undefined) return;
      const { openControlSocket } = await import("./control-socket.ts");
      control = await openControlSocket({ dataFolder: config.sandbox.root, sandboxes: operator, logger });
    },
    async close() {
      await control?.close();
      watching.abort();
      mcp.close();
      await layer?.close();
    },
  };
}

const NO_SANDBOXES: Partial<SandboxPart> = {};

/** A server without sandboxes need not wait for their code. */
async function addSandboxes(registry: Registry, options: AssembleOptions): Promise<SandboxPart> {
  const { serveSandboxes } = await import("./serve-sandboxes.ts");
  return serveSandboxes(registry, options);
}
