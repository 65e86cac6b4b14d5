import { compileTool } from "../capability/define-tool.ts";
import type { Registry } from "../capability/registry.ts";
import type { Config } from "../config/schema.ts";
import { builtInTools } from "../tools/built-in-tools.ts";
import type { Toolset, ToolServices } from "../tools/sandbox-tool.ts";
import { sandboxFiles } from "../tools/sandbox-files.ts";
import type { SandboxHomes } from "./sandbox-homes.ts";

export interface BuiltInsOptions {
  readonly config: Config;
  readonly services: ToolServices;
  /** Where several servers share the load. */
  readonly homes?: SandboxHomes | undefined;
}

/** Adds the built-in tools. Those of the configured dialects are listed; the others can be called by name. */
export function registerBuiltIns(registry: Registry, { config: { tools }, services, homes }: BuiltInsOptions): void {
  for (const { definition, dialect, toolset, operation } of builtInTools(services)) {
    if (!isServed(toolset, tools.toolsets)) continue;
    const compiled = compileTool(definition, operation);
    const tool = homes?.tool(compiled) ?? compiled;
    if (tools.dialects.includes(dialect)) registry.addTool(tool);
    else registry.addUnlisted(tool);
  }
  const files = sandboxFiles(services);
  registry.addResource(homes?.files(files) ?? files);
}

/** Every tool in a list costs a model's attention: what is seldom needed is served where it is asked for. */
function isServed(toolset: Toolset, wanted: readonly Toolset[]): boolean {
  return wanted.length === 0 ? toolset !== "browser-extra" : wanted.includes(toolset);
}
