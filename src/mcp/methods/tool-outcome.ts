import type { ToolResult } from "../../capability/content.ts";
import type { Tool } from "../../capability/registry.ts";
import { toOwlError } from "../../errors/owl-error.ts";
import { QUOTA_META_KEY } from "../../governance/quota.ts";
import { CallSuspended } from "../../call/call.ts";
import { renderFailure } from "../../call/render-result.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { isModern } from "../versions.ts";
import { errorData, isToolError } from "../wire-error.ts";

/** Returns the failure as a result when the era requires that; throws it otherwise. */
export function failureOf(mcp: Mcp, tool: Tool, thrown: unknown, exchange: Exchange): Record<string, unknown> {
  if (thrown instanceof CallSuspended) throw thrown;
  const error = toOwlError(thrown);
  const { caller, traceId } = exchange;
  if (error.kind === "execution_error" || error.kind === "internal") {
    mcp.logger.warning("tool failed", {
      tool: tool.name,
      trace_id: traceId,
      principal: caller.principal.id,
      error: error.cause ?? error,
    });
  }
  if (!isToolError(error.kind, caller.protocolVersion)) throw error;
  const { quota, ...data } = errorData(error, { version: caller.protocolVersion, traceId, withStack: mcp.withStack });
  const { _meta, ...failure } = renderFailure(tool.name, error, data);
  return { ...failure, _meta: quota === undefined ? _meta : { ..._meta, [QUOTA_META_KEY]: quota } };
}

/** Revisions before 2026-07-28 support structured content only as an object. */
export function forEra(tool: Tool, result: ToolResult, version: string): Record<string, unknown> {
  const { structuredContent } = result;
  if (isModern(version) || structuredContent === undefined) return { ...result };
  const isPlain =
    typeof structuredContent === "object" && structuredContent !== null && !Array.isArray(structuredContent);
  const schemaIsPlain = tool.output === undefined || tool.output.json["type"] === "object";
  return isPlain && schemaIsPlain ? { ...result } : { ...result, structuredContent: { result: structuredContent } };
}
