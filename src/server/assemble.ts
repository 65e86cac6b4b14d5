import { Changes } from "../capabilities/changes.ts";
import { Registry } from "../capabilities/registry.ts";
import type { Config } from "../config/schema.ts";
import type { HandlerLibrary } from "../handlers/handler-library.ts";
import { Pipeline, type SkillTexts } from "../pipeline/pipeline.ts";
import { Mcp } from "../protocol/mcp.ts";
import type { FileTransfer } from "../sandbox/file-transfer.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ControlSocket } from "./control-socket.ts";
import type { LinkedSkillsOptions } from "./linked-skills.ts";
import type { OpenHandlersOptions } from "./open-handlers.ts";
import type { OpenRuntime } from "./open-runtime.ts";
import type { OperatorSandboxes } from "./operator-sandboxes.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";
import type { ServedSkills, ServeSkillsOptions } from "./serve-skills.ts";

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
  const skills = config.skills.dir === "" ? undefined : await addSkills({ registry, changes, config, logger });
  const handlers =
    config.handlers.paths.length > 0 ? await loadHandlers({ config, registry, changes, logger, layer }) : undefined;
  const skillTexts = skills === undefined ? undefined : await linkSkills({ config, registry, changes, logger, skills });
  const pipeline = new Pipeline({
    registry,
    skillTexts,
    timeoutMs: config.tools.timeoutSeconds * 1000,
    progressAfterMs: config.tools.progressAfterSeconds * 1000,
    maxResultChars: config.tools.maxResultChars,
  });
  const serverInfo = { name: "owlclaw", title: "OwlClaw", version: PACKAGE_VERSION };
  const mcp = new Mcp({
    pipeline,
    changes,
    logger,
    serverInfo,
    withStack: config.mode === "development",
    servesSkills: skills !== undefined,
  });
  let control: ControlSocket | undefined;
  const watching = new AbortController();
  watchResources({ registry, changes, logger }, watching.signal);
  return {
    mcp,
    files,
    operator,
    start: async () => {
      await layer?.start();
      skills?.start();
      if (config.handlers.watch) handlers?.watch();
    },
    openControl: async () => {
      if (operator === undefined) return;
      const { openControlSocket } = await import("./control-socket.ts");
      control = await openControlSocket({ dataFolder: config.sandbox.root, sandboxes: operator, logger });
    },
    async close() {
      await control?.close();
      watching.abort();
      await skills?.close();
      mcp.close();
      await handlers?.close();
      await layer?.close();
    },
  };
}

async function addSkills(
  options: Pick<ServeSkillsOptions, "registry" | "changes" | "logger"> & { config: Config },
): Promise<ServedSkills> {
  const { serveSkills } = await import("./serve-skills.ts");
  return serveSkills({ ...options, config: options.config.skills });
}

const NO_SANDBOXES: Partial<SandboxPart> = {};

/** A server without sandboxes need not wait for their code. */
async function addSandboxes(registry: Registry, options: AssembleOptions): Promise<SandboxPart> {
  const { serveSandboxes } = await import("./serve-sandboxes.ts");
  return serveSandboxes(registry, options);
}

function watchResources(
  { registry, changes, logger }: Pick<OpenHandlersOptions, "registry" | "changes" | "logger">,
  signal: AbortSignal,
): void {
  for (const { definition } of registry.resources()) {
    try {
      definition.watch?.(() => changes.resourceUpdated(definition.uri), signal);
    } catch (error) {
      logger.error("resource cannot be watched", { uri: definition.uri, error });
    }
  }
}

async function linkSkills({
  config,
  ...options
}: Omit<LinkedSkillsOptions, "inline"> & { config: Config }): Promise<SkillTexts> {
  const { LinkedSkills } = await import("./linked-skills.ts");
  const linked = new LinkedSkills({ ...options, inline: config.handlers.inlineSkills });
  await linked.refresh();
  return linked;
}

async function loadHandlers(options: OpenHandlersOptions): Promise<HandlerLibrary> {
  const { openHandlers } = await import("./open-handlers.ts");
  const library = openHandlers(options);
  await library.load();
  return library;
}
