import type { ToolResult } from "../capability/content.ts";
import type { PermissionScope } from "../capability/define.ts";
import type { Resource, Tool } from "../capability/registry.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Caller } from "../call/call.ts";
import { Lifeline } from "../call/lifeline.ts";
import { silentConversation } from "../mcp/conversations/silent.ts";
import { allTools } from "../mcp/methods/list-tools.ts";
import { newTraceId } from "../mcp/request-observer.ts";
import { NEWEST_LEGACY_VERSION, NEWEST_MODERN_VERSION } from "../mcp/versions.ts";
import type { Logger } from "../telemetry/logger.ts";
import { assemble } from "./assemble.ts";
import type { OpenRuntime } from "../sandbox/open-runtime.ts";
import { NamedCalls } from "../operator/policy-service.ts";

export interface ToolSummary {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly scope: PermissionScope;
}

export interface ResourceSummary {
  /** A URI, or a template with variables in braces. */
  readonly uri: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** What the server would serve, without any transport: for commands that look or try. */
export interface LocalServer {
  listTools(): Promise<readonly ToolSummary[]>;
  /** The same tools as a client of the newest revision gets them. */
  wireTools(): Promise<readonly Readonly<Record<string, unknown>>[]>;
  listResources(): Promise<readonly ResourceSummary[]>;
  callTool(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: { readonly signal: AbortSignal },
  ): Promise<ToolResult>;
  /** What a tool's name, a URI or `prompt:NAME` means to the policy. */
  readonly named: NamedCalls;
  close(): Promise<void>;
}

export async function openLocal({
  loaded: { config, volumes },
  logger,
  openRuntime,
  isGoverned = true,
}: {
  readonly loaded: LoadedConfig;
  readonly logger: Logger;
  readonly openRuntime?: OpenRuntime;
  /** false: for commands that only look, and must leave no trace. */
  readonly isGoverned?: boolean;
}): Promise<LocalServer> {
  const assembly = await assemble({ config, volumes, logger, openRuntime, withPool: false, isGoverned });
  const { pipeline, changes } = assembly.mcp;
  const principal = { id: config.stdio.clientId, scopes: [], claims: {} };
  const caller: Caller = {
    principal,
    label: undefined,
    transport: "local",
    protocolVersion: NEWEST_LEGACY_VERSION,
    sessionId: undefined,
  };
  return {
    listTools: async () => pipeline.visibleTools(caller).map(toToolSummary),
    wireTools: async () => allTools(assembly.mcp, { ...caller, protocolVersion: NEWEST_MODERN_VERSION }),
    listResources: async () =>
      [...pipeline.view.resources(caller), ...pipeline.view.templates(caller)].map(toResourceSummary),
    callTool: async (name, args, { signal }) => {
      const life = Lifeline.of(signal);
      const call = { caller, life, traceId: newTraceId(), conversation: silentConversation(changes) };
      return pipeline.callTool(await pipeline.findTool(name, call, args), args, call);
    },
    named: new NamedCalls(pipeline.registry, config),
    close: () => assembly.close(),
  };
}

function toToolSummary({ name, description, version, scope }: Tool): ToolSummary {
  return { name, description, version, scope };
}

function toResourceSummary({ definition: { uri, name, description, mimeType } }: Resource): ResourceSummary {
  return {
    uri,
    name,
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
  };
}
