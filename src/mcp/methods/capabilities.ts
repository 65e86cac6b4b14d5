import type { Tool } from "../../capability/registry.ts";
import type { Terms } from "../../governance/policy/terms.ts";
import { constraintsOf } from "../constraints.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { SUPPORTED_VERSIONS } from "../versions.ts";

/** `mcp.capabilities`: every tool that the caller may know of, with its version and whether it may be used. */
export async function describeCapabilities(mcp: Mcp, exchange: Exchange): Promise<Record<string, unknown>> {
  const { caller } = exchange;
  const tools = mcp.pipeline.view.known(caller);
  await mcp.pipeline.recordList("mcp.capabilities", exchange, tools.length);
  return {
    server: mcp.serverInfo,
    protocolVersion: caller.protocolVersion,
    supportedVersions: SUPPORTED_VERSIONS,
    tools: tools.map((tool) => describeTool(tool, mcp.pipeline.view.termsOf(tool, caller))),
  };
}

function describeTool({ name, version, title, description, scope }: Tool, terms: Terms | undefined) {
  const denied = terms?.denied;
  const constraints = terms === undefined ? {} : constraintsOf(terms);
  return {
    name,
    version,
    ...(title !== undefined && { title }),
    description,
    permissions: {
      allow: denied === undefined,
      scope,
      ...(denied !== undefined && { reason: denied.reason ?? `the policy refuses it (${denied.rule})` }),
    },
    ...(Object.keys(constraints).length > 0 && { constraints }),
  };
}
