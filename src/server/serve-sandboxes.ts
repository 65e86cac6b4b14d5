import type { Registry } from "../capability/registry.ts";
import type { PlannedVolume } from "../config/plan-volumes.ts";
import type { Config } from "../config/schema.ts";
import { FileTransfer } from "../sandbox/file-transfer.ts";
import { readTemplates } from "../sandbox/templates.ts";
import type { SandboxObserver } from "../sandbox/sandbox-observer.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import type { Tracer } from "../telemetry/tracing/tracer.ts";
import { openRuntime, type OpenRuntime } from "../sandbox/open-runtime.ts";
import type { SandboxOwners } from "../cluster/sandbox-owners.ts";
import { createSandboxLayer, type SandboxLayer } from "./sandbox-layer.ts";
import { compileTool } from "../capability/define-tool.ts";
import { builtInTools } from "../tools/built-in-tools.ts";
import type { Toolset, ToolServices } from "../tools/sandbox-tool.ts";
import { sandboxFiles } from "../tools/sandbox-files.ts";

export interface SandboxPart {
  readonly layer: SandboxLayer;
  readonly files: FileTransfer;
  /** What sandboxes are made of when nobody says. */
  readonly template: string;
}

export interface ServeSandboxesOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly openRuntime?: OpenRuntime | undefined;
  /** `sandbox.volumes`, with what is protected in them. */
  readonly volumes?: readonly PlannedVolume[] | undefined;
  readonly withPool?: boolean;
  readonly sandboxOwners?: SandboxOwners | undefined;
  readonly metrics?: Metrics | undefined;
  readonly tracer?: Tracer | undefined;
  readonly sandboxObserver?: SandboxObserver | undefined;
}

/** Everything of sandboxes: what runs them, the tools that use them, their files. */
export async function serveSandboxes(registry: Registry, options: ServeSandboxesOptions): Promise<SandboxPart> {
  const { config, logger, withPool = true, sandboxOwners, metrics, tracer, sandboxObserver, volumes = [] } = options;
  const templates = await readTemplates(config.sandbox, logger);
  const open = options.openRuntime ?? openRuntime;
  const layer = createSandboxLayer({
    config,
    logger,
    openRuntime: open,
    templates,
    volumes,
    withPool,
    serverId: sandboxOwners?.serverId,
    metrics,
    tracer,
    sandboxObserver,
  });
  const { sandboxes } = layer.services;
  const { workspace: workspacePath } = config.sandbox;
  const files = new FileTransfer({ sandboxes, workspacePath, maxFrameBytes: config.guest.maxFrameBytes });
  registerBuiltIns(registry, { config, services: layer.services, sandboxOwners });
  return { layer, files, template: config.sandbox.template };
}

export interface BuiltInsOptions {
  readonly config: Config;
  readonly services: ToolServices;
  /** Where several servers share the load. */
  readonly sandboxOwners?: SandboxOwners | undefined;
}

/** Adds the built-in tools. Those of the configured dialects are listed; the others can be called by name. */
export function registerBuiltIns(
  registry: Registry,
  { config: { tools }, services, sandboxOwners }: BuiltInsOptions,
): void {
  for (const { definition, dialect, toolset, operation } of builtInTools(services)) {
    if (!isServed(toolset, tools.toolsets)) continue;
    const compiled = compileTool(definition, operation);
    const tool = sandboxOwners?.tool(compiled) ?? compiled;
    if (tools.dialects.includes(dialect)) registry.addTool(tool);
    else registry.addUnlisted(tool);
  }
  const files = sandboxFiles(services);
  registry.addResource(sandboxOwners?.files(files) ?? files);
}

/** Every tool in a list costs a model's attention: what is seldom needed is served where it is asked for. */
function isServed(toolset: Toolset, wanted: readonly Toolset[]): boolean {
  return wanted.length === 0 ? toolset !== "browser-extra" : wanted.includes(toolset);
}
