import type { Tool } from "../../capability/registry.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { canUseTasks, runAsTask } from "./run-as-task.ts";
import { runWithQuestions } from "./run-with-questions.ts";
import { failureOf, forEra } from "./tool-outcome.ts";

export interface CallToolParams {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * `tools/call` in every era. Throws an `OwlError` when the era requires a protocol error, and returns a result
 * otherwise.
 */
export async function callTool(
  mcp: Mcp,
  { name, arguments: args = {} }: CallToolParams,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const found = mcp.pipeline.findTool(name, exchange, args);
  const tool = found instanceof Promise ? await found : found;
  if (tool.task !== undefined && canUseTasks(tool, exchange))
    return runAsTask(mcp, { tool, task: tool.task, args }, exchange);
  return runTool(mcp, tool, args, exchange);
}

async function runTool(mcp: Mcp, tool: Tool, args: unknown, exchange: Exchange): Promise<Record<string, unknown>> {
  const { protocolVersion } = exchange.caller;
  try {
    return await runWithQuestions(mcp, exchange, {
      boundTo: ["tools/call", tool.name, args],
      run: async (call) => forEra(tool, await mcp.pipeline.callTool(tool, args, call), protocolVersion),
    });
  } catch (thrown) {
    return failureOf(mcp, tool, thrown, exchange);
  }
}
