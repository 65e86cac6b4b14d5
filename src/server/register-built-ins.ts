import { compileTool } from "../capabilities/define-tool.ts";
import type { Registry } from "../capabilities/registry.ts";
import type { Config } from "../config/schema.ts";
import { type BuiltInTool, builtInTools } from "../tools/built-in-tools.ts";
import { sandboxFiles } from "../tools/sandbox-files.ts";
import type { ToolServices } from "../tools/tool-services.ts";

/**
 * Adds the built-in tools. Those of the configured dialects are listed and come before the user's handlers; the others
 * can be called by name, unless a handler has taken it.
 */
export function registerBuiltIns(
  registry: Registry,
  { tools }: Config,
  services: ToolServices,
): { readonly addUnlisted: () => void } {
  const served = builtInTools(services).filter(
    ({ toolset }) => tools.toolsets.length === 0 || tools.toolsets.includes(toolset),
  );
  const isListed = ({ dialect }: BuiltInTool): boolean => tools.dialects.includes(dialect);
  for (const { definition } of served.filter(isListed)) registry.addTool(compileTool(definition));
  registry.addResource(sandboxFiles(services));
  return {
    addUnlisted: () => {
      for (const tool of served) {
        const { definition } = tool;
        if (!isListed(tool) && registry.tool(definition.name) === undefined)
          registry.addTool(compileTool(definition), { isListed: false });
      }
    },
  };
}
