import { Changes } from "../capabilities/changes.ts";
import { Registry } from "../capabilities/registry.ts";
import type { Config } from "../config/schema.ts";
import { Pipeline } from "../pipeline/pipeline.ts";
import { Mcp } from "../protocol/mcp.ts";
import type { FileTransfer } from "../sandbox/file-transfer.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ControlSocket } from "./control-socket.ts";
import type { OpenRuntime } from "./open-runtime.ts";
import type { OperatorSandboxes } from "./operator-sandboxes.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import { serveCapabilities } from "./serve-capabilities.ts";

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
  const capabilities = await serveCapabilities({ ...options, registry, changes });
  const { sandboxes, servesSkills, skillTexts } = capabilities;
  const pipeline = new Pipeline({
    registry,
    skillTexts,
    timeoutMs: config.tools.timeoutSeconds * 1000,
    progressAfterMs: config.tools.progressAfterSeconds * 1000,
    maxResultChars: config.tools.maxResultChars,
  });
  const serverInfo = { name: "owlclaw", title: "OwlClaw", version: PACKAGE_VERSION };
  const withStack = config.mode === "development";
  const mcp = new Mcp({ pipeline, changes, logger, serverInfo, withStack, servesSkills });
  let control: ControlSocket | undefined;
  return {
    mcp,
    files: sandboxes?.files,
    operator: sandboxes?.operator,
    start: () => capabilities.start(),
    openControl: async () => {
      if (sandboxes === undefined) return;
      const { openControlSocket } = await import("./control-socket.ts");
      control = await openControlSocket({
        dataFolder: config.sandbox.root,
        sandboxes: sandboxes.operator,
        logger,
      });
    },
    async close() {
      await control?.close();
      await capabilities.stopWatching();
      mcp.close();
      await capabilities.close();
    },
  };
}
