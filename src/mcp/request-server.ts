import { isJSONRPCRequest, SERVER_INFO_META_KEY } from "@modelcontextprotocol/server";
import { withFields } from "../call/call.ts";
import { OwlError, toOwlError } from "../errors/owl-error.ts";
import { liveConversation } from "./conversations/live.ts";
import type { Exchange } from "./exchange.ts";
import { isObject, isRequestId, type JsonRpcRequest, type JsonRpcResponse } from "./json-rpc.ts";
import type { Mcp } from "./mcp.ts";
import { type Method, methodOf, type Result } from "./method-table.ts";
import type { ServedRequest } from "./peer.ts";
import { type Envelope, readEnvelope } from "./request-envelope.ts";
import { isModern } from "./versions.ts";
import { errorAnswer } from "./wire-error.ts";

/** Serves one request, of every method, revision and transport. Every error becomes an error response here. */
export async function serve(message: JsonRpcRequest, served: ServedRequest): Promise<JsonRpcResponse> {
  const { mcp, caller, traceId } = served;
  try {
    served.check?.();
    const method = findMethod(message, served);
    const envelope = isModern(caller.protocolVersion) ? readEnvelope(message) : undefined;
    const run = method.read(message);
    const result = await run({ served, message, exchange: exchangeOf(message, served, envelope) });
    return {
      jsonrpc: "2.0",
      id: message.id,
      result: envelope === undefined ? result : stamped(mcp, method, result),
    };
  } catch (thrown) {
    const error = toOwlError(thrown);
    // `failureOf` logs the errors of tools, with the name of the tool.
    if (error.kind === "internal" && message.method !== "tools/call")
      mcp.logger.error("request failed", { method: message.method, trace_id: traceId, error: thrown });
    return errorAnswer(message.id, error, {
      version: caller.protocolVersion,
      traceId,
      withStack: mcp.withStack,
    });
  }
}

function findMethod(message: JsonRpcRequest, { mcp, caller }: ServedRequest): Method {
  assertMeta(message);
  const method = methodOf(message.method, { version: caller.protocolVersion, servesSkills: mcp.servesSkills });
  if (method === undefined) {
    // `initialize` names the revision that it asks for: an error about that revision is more exact.
    if (message.method === "initialize" && isModern(caller.protocolVersion)) readEnvelope(message);
    throw new OwlError("method_not_found", "Method not found");
  }
  return method;
}

/** Checks that the members of `_meta` which the protocol defines have the types that it gives them. */
function assertMeta({ jsonrpc, id, method, params }: JsonRpcRequest): void {
  if (params === undefined || !("_meta" in params)) return;
  const { _meta: meta } = params;
  if (meta === undefined || isJSONRPCRequest({ jsonrpc, id, method, params: { _meta: meta } })) return;
  const what = !isObject(meta)
    ? "_meta must be an object"
    : "progressToken" in meta && !isRequestId(meta["progressToken"])
      ? "_meta.progressToken must be a string or an integer"
      : "_meta has a reserved key with a value of the wrong type";
  throw new OwlError("invalid_params", `invalid parameters for ${method}: ${what}`);
}

function exchangeOf(
  { id, params = {} }: JsonRpcRequest,
  { mcp, peer, caller, traceId, life, send, canStream, closeStream }: ServedRequest,
  envelope: Envelope | undefined,
): Exchange {
  const { requestState, inputResponses, _meta: meta } = params;
  if (requestState !== undefined && typeof requestState !== "string")
    throw new OwlError("invalid_params", "requestState must be a string");
  const capabilities = envelope === undefined ? peer.capabilities : envelope.capabilities;
  return {
    caller,
    traceId,
    requestId: id,
    life,
    capabilities,
    inputResponses: inputResponses === undefined ? undefined : bareResponses(inputResponses),
    requestState,
    conversation: liveConversation({
      send,
      capabilities,
      changes: mcp.changes,
      closeStream,
      progressToken: canStream && isObject(meta) ? meta["progressToken"] : undefined,
      lowestLevel: envelope === undefined ? (peer.logLevel ?? "debug") : canStream ? envelope.logLevel : undefined,
      ask: envelope === undefined ? (question) => peer.questions.ask(question, { send, life }) : undefined,
    }),
  };
}

/**
 * The client's answers, without those that are wrapped in a message: these do not count, and their questions are asked
 * again.
 */
function bareResponses(inputResponses: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(inputResponses)) return {};
  const isBare = (value: unknown): boolean => isObject(value) && !("method" in value) && !("result" in value);
  return Object.fromEntries(Object.entries(inputResponses).filter(([, value]) => isBare(value)));
}

/**
 * Adds what revisions without handshake require in each result: its type, the server, and how long it may be cached.
 */
function stamped({ serverInfo }: Mcp, { isCacheable }: Method, result: Result): Result {
  const meta = isObject(result["_meta"]) ? result["_meta"] : {};
  const info = { [SERVER_INFO_META_KEY]: meta[SERVER_INFO_META_KEY] ?? serverInfo };
  const resultType = result["resultType"] ?? "complete";
  const stamp = { resultType, _meta: withFields(meta, info) };
  // A result must not be cached unless it says otherwise.
  const isKept = isCacheable && resultType === "complete";
  return withFields(result, isKept ? { ttlMs: 0, cacheScope: "private", ...stamp } : stamp);
}
