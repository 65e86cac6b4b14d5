import { isOwlError } from "../errors/owl-error.ts";
import type { Caller } from "../pipeline/caller.ts";
import { isObject, type JsonRpcRequest, type JsonRpcResponse } from "./json-rpc.ts";
import type { Mcp } from "./mcp.ts";
import { toWireError } from "./wire-error.ts";

interface Listener {
  readonly caller: Caller;
  readonly traceId: string;
}

/** The refusal of a `subscriptions/listen` that names a resource which the caller must not know of; nothing otherwise. */
export function refuseListening(
  mcp: Mcp,
  { id, method, params }: JsonRpcRequest,
  { caller, traceId }: Listener,
): JsonRpcResponse | undefined {
  if (method !== "subscriptions/listen") return undefined;
  try {
    for (const uri of watchedUris(params)) mcp.pipeline.assertOpenToWatch(uri, caller);
    return undefined;
  } catch (error) {
    if (!isOwlError(error)) throw error;
    const options = { version: caller.protocolVersion, traceId, withStack: mcp.withStack };
    return { jsonrpc: "2.0", id, error: toWireError(error, options) };
  }
}

function watchedUris(params: JsonRpcRequest["params"]): readonly string[] {
  const filter = isObject(params?.["notifications"]) ? params["notifications"] : params;
  const uris = filter?.["resourceSubscriptions"];
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === "string") : [];
}
