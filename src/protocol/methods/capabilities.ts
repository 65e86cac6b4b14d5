import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { SUPPORTED_VERSIONS } from "../versions.ts";

/** `mcp.capabilities`: every tool with its version and what it may reach. */
export function describeCapabilities(mcp: Mcp, { caller }: Exchange): Record<string, unknown> {
  return {
    server: mcp.serverInfo,
    protocolVersion: caller.protocolVersion,
    supportedVersions: SUPPORTED_VERSIONS,
    tools: mcp.pipeline.visibleTools(caller).map(({ name, version, title, description, scope }) => ({
      name,
      version,
      ...(title !== undefined && { title }),
      description,
      permissions: { allow: true, scope },
    })),
  };
}
