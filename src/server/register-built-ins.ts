import { compileTool } from "../capabilities/define-tool.ts";
import type { Registry } from "../capabilities/registry.ts";
import type { Config } from "../config/schema.ts";
import { builtInTools } from "../tools/built-in-tools.ts";
import { sandboxFiles } from "../tools/sandbox-files.ts";
import type { ToolServices } from "../tools/tool-services.ts";

/** Adds the built-in tools. Those of the configured dialects are listed; the others can be called by name. */
export function registerBuiltIns(registry: Registry, { tools }: Config, services: ToolServices): void {
  for (const { definition, dialect, toolset, operation } of builtInTools(services)) {
    if (tools.toolsets.length > 0 && !tools.toolsets.includes(toolset)) continue;
    const tool = compileTool(definition, operation);
    if (tools.dialects.includes(dialect)) registry.addTool(tool);
    else registry.addUnlisted(tool);
  }
  registry.addResource(sandboxFiles(services));
}
