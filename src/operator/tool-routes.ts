import * as z from "zod";
import type { Tool } from "../capability/registry.ts";
import { toOwlError } from "../errors/owl-error.ts";
import type { Call, Caller } from "../call/call.ts";
import { Lifeline } from "../call/lifeline.ts";
import { silentConversation } from "../mcp/conversations/silent.ts";
import type { Mcp } from "../mcp/mcp.ts";
import { newTraceId } from "../mcp/request-observer.ts";
import { NEWEST_LEGACY_VERSION } from "../mcp/versions.ts";
import type { ApiRequest, ApiRoute } from "./api.ts";
import type { ProblemFacts, ToolCallAnswer, ToolFacts } from "./contract-policy.ts";
import { bodyAs } from "./request-body.ts";

export interface ToolSources {
  readonly mcp: Mcp;
  /** Tools from handler files of the operator. */
  readonly handlers: () => readonly Tool[];
  readonly handlerProblems: () => readonly ProblemFacts[];
  readonly skillProblems: () => readonly ProblemFacts[];
}

const callSchema = z.strictObject({
  name: z.string().min(1).max(256),
  arguments: z.record(z.string(), z.unknown()).default({}),
});

/**
 * `tools`, `skills` and `handlers`: what is served, the problems that keep others from being served, and test calls.
 */
export function toolRoutes(sources: ToolSources): readonly ApiRoute[] {
  const { mcp } = sources;
  return [
    { method: "GET", path: "tools", answer: ({ query }) => ({ tools: toolsFor(mcp, query.get("client")) }) },
    { method: "POST", path: "tools/call", answer: async (request) => ({ ...(await callTool(mcp, request)) }) },
    { method: "GET", path: "skills", answer: () => ({ skills: skillsOf(mcp), problems: sources.skillProblems() }) },
    {
      method: "GET",
      path: "handlers",
      answer: () => ({
        handlers: sources.handlers().map(({ name, description }) => ({ tool: name, description })),
        problems: sources.handlerProblems(),
      }),
    },
  ];
}

function toolsFor({ pipeline }: Mcp, client: string | null): ToolFacts[] {
  const tools =
    client === null || client === ""
      ? pipeline.registry.tools()
      : pipeline.visibleTools(callerNamed({ id: client, scopes: [], claims: {} }));
  return tools.map(({ name, title, description, scope, input, effect }) => ({
    name,
    title: title ?? name,
    description,
    toolset: scope,
    inputSchema: input.json,
    readOnly: effect.readOnly,
    destructive: effect.destructive,
  }));
}

/** A call of the operator. It passes policy, limits and ledger as every call. */
async function callTool(mcp: Mcp, { operator, body, signal }: ApiRequest): Promise<ToolCallAnswer> {
  const { name, arguments: args } = bodyAs(callSchema, body);
  const { pipeline, changes } = mcp;
  const call: Call = {
    caller: callerNamed(operator),
    traceId: newTraceId(),
    life: Lifeline.of(signal),
    conversation: silentConversation(changes),
  };
  const startMs = performance.now();
  const took = (): number => Math.round(performance.now() - startMs);
  try {
    const result = await pipeline.callTool(await pipeline.findTool(name, call, args), args, call);
    const { content, structuredContent: structured, isError } = result;
    return {
      ok: isError !== true,
      content: content ?? [],
      ...(structured !== undefined && { structured }),
      durationMs: took(),
    };
  } catch (thrown) {
    const { kind, message, hint } = toOwlError(thrown);
    return { ok: false, content: [], error: { kind, message, hint }, durationMs: took() };
  }
}

function callerNamed(principal: Caller["principal"]): Caller {
  return {
    principal,
    label: undefined,
    transport: "local",
    protocolVersion: NEWEST_LEGACY_VERSION,
    sessionId: `dashboard:${principal.id}`,
  };
}

function skillsOf({ pipeline }: Mcp): { readonly uri: string; readonly name: string; readonly description: string }[] {
  return pipeline.registry
    .resources()
    .filter(({ definition }) => definition.skill !== undefined)
    .map(({ definition: { uri, name, description = "" } }) => ({ uri, name, description }));
}
