import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  LOG_LEVEL_META_KEY,
  SERVER_INFO_META_KEY,
} from "@modelcontextprotocol/server";
import { withFields } from "../collections/with-fields.ts";
import { toOwlError } from "../errors/owl-error.ts";
import type { Conversation } from "../pipeline/call.ts";
import type { Caller } from "../pipeline/caller.ts";
import type { Lifeline } from "../pipeline/lifeline.ts";
import type { ClientCapabilities, Exchange } from "./exchange.ts";
import { isObject, type JsonRpcRequest, type JsonRpcResponse, type RequestId } from "./json-rpc.ts";
import type { Mcp } from "./mcp.ts";
import { callTool, type CallToolParams } from "./methods/call-tool.ts";
import { listTools } from "./methods/list-tools.ts";
import { readResource, type ReadParams } from "./methods/resources.ts";
import { isModern } from "./versions.ts";
import { toWireError } from "./wire-error.ts";

/** A `tools/call`, `tools/list` or `resources/read` so plain that the SDK would change nothing about it. */
export interface FastCall {
  readonly wants: CallToolParams | ReadParams | ListToolsParams;
  readonly capabilities: ClientCapabilities;
}

/**
 * Reads a call that can be answered without the SDK, which costs ten times the call itself. Whatever is not exactly
 * as expected is left to the SDK, with its errors: this reader only ever says yes to what needs no judgement.
 */
export function readFastCall({ method, params }: JsonRpcRequest, version: string): FastCall | undefined {
  if (params === undefined || RETRY_FIELDS.some((field) => field in params)) return undefined;
  const { _meta: meta = {} } = params;
  if (!isObject(meta) || "progressToken" in meta) return undefined;
  const wants = readWants(method, params);
  if (wants === undefined) return undefined;
  const capabilities = isModern(version) ? readEnvelope(meta) : {};
  return capabilities === undefined ? undefined : { wants, capabilities };
}

function readWants(method: string, params: Record<string, unknown>): FastCall["wants"] | undefined {
  if (method === "tools/call") return readCall(params);
  if (method === "resources/read") return readRead(params);
  return method === "tools/list" ? readList(params) : undefined;
}

interface ListToolsParams {
  readonly cursor: string | undefined;
}

function readList({ cursor }: Record<string, unknown>): ListToolsParams | undefined {
  return cursor === undefined || typeof cursor === "string" ? { cursor } : undefined;
}

function readCall({ name, arguments: args = {} }: Record<string, unknown>): CallToolParams | undefined {
  return typeof name === "string" && isObject(args) ? { name, arguments: args } : undefined;
}

function readRead({ uri, _meta }: Record<string, unknown>): ReadParams | undefined {
  if (typeof uri !== "string") return undefined;
  return { uri, _meta: isObject(_meta) ? _meta : undefined };
}

/** Fields that only mean something to a call with a history. */
const RETRY_FIELDS = ["inputResponses", "requestState", "task"] as const;

/** The capabilities that the request declares; nothing where the envelope has anything out of the ordinary. */
function readEnvelope(meta: Record<string, unknown>): ClientCapabilities | undefined {
  if (LOG_LEVEL_META_KEY in meta) return undefined;
  const capabilities = meta[CLIENT_CAPABILITIES_META_KEY];
  const info = meta[CLIENT_INFO_META_KEY];
  if (!isObject(capabilities) || Object.values(capabilities).some((value) => !isObject(value))) return undefined;
  if (
    info !== undefined &&
    !(isObject(info) && typeof info["name"] === "string" && typeof info["version"] === "string")
  )
    return undefined;
  return capabilities;
}

export interface FastOptions {
  readonly mcp: Mcp;
  readonly caller: Caller;
  readonly traceId: string;
  readonly requestId: RequestId;
  readonly life: Lifeline;
  readonly conversation: Conversation;
}

export function runFastCall(
  { wants, capabilities }: FastCall,
  { mcp, caller, traceId, requestId, life, conversation }: FastOptions,
): Promise<Record<string, unknown>> {
  const exchange: Exchange = {
    caller,
    traceId,
    requestId,
    life,
    capabilities,
    conversation,
    inputResponses: undefined,
    requestState: undefined,
  };
  if ("name" in wants) return callTool(mcp, wants, exchange);
  return "uri" in wants ? readResource(mcp, wants, exchange) : listTools(mcp, wants.cursor, exchange);
}

/** The answer as the SDK would have written it. */
export async function answerFastCall(
  message: JsonRpcRequest,
  running: Promise<Record<string, unknown>>,
  options: FastOptions,
): Promise<JsonRpcResponse> {
  const { mcp, caller, traceId } = options;
  try {
    const result = await running;
    return { jsonrpc: "2.0", id: message.id, result: isModern(caller.protocolVersion) ? stamped(mcp, result) : result };
  } catch (thrown) {
    const failure = toOwlError(thrown);
    // What a tool failed with is logged where it is known which tool it was.
    if (failure.kind === "internal" && message.method !== "tools/call")
      mcp.logger.error("request failed", { method: message.method, trace_id: traceId, error: thrown });
    const error = toWireError(failure, { version: caller.protocolVersion, traceId, withStack: mcp.withStack });
    return { jsonrpc: "2.0", id: message.id, error };
  }
}

function stamped({ serverInfo }: Mcp, result: Record<string, unknown>): Record<string, unknown> {
  const meta = isObject(result["_meta"]) ? result["_meta"] : {};
  const info = { [SERVER_INFO_META_KEY]: meta[SERVER_INFO_META_KEY] ?? serverInfo };
  const stamp = { resultType: result["resultType"] ?? "complete", _meta: withFields(meta, info) };
  // What is read may be kept for no time at all, unless it says otherwise.
  return withFields(result, isCacheable(result) ? { ttlMs: 0, cacheScope: "private", ...stamp } : stamp);
}

/** Lists and contents say how long they hold; results of calls do not. */
function isCacheable(result: Record<string, unknown>): boolean {
  return !("content" in result) && ("contents" in result || "tools" in result);
}
