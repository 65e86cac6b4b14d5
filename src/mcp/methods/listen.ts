import { specTypeSchemas } from "@modelcontextprotocol/server";
import { OwlError } from "../../errors/owl-error.ts";
import { isObject, type JsonRpcRequest } from "../json-rpc.ts";
import type { ServedRequest } from "../peer.ts";

/** `subscriptions/listen`. A resource that the caller must not read it must not listen to either. */
export async function listen(
  { mcp, peer, caller, life, send, cut }: ServedRequest,
  message: JsonRpcRequest,
): Promise<Record<string, unknown>> {
  for (const uri of watchedUris(message.params)) mcp.pipeline.assertOpenToWatch(uri, caller);
  const outcome = specTypeSchemas.SubscriptionsListenRequest["~standard"].validate(message);
  if (outcome.issues !== undefined)
    throw new OwlError(
      "invalid_params",
      "Invalid params: 'notifications' is required and must be a valid SubscriptionFilter",
    );
  const { notifications: filter } = outcome.value.params;
  return peer.subscriptions.listen(filter, { id: message.id, caller, life, send, cut });
}

function watchedUris(params: JsonRpcRequest["params"]): readonly string[] {
  const filter = isObject(params?.["notifications"]) ? params["notifications"] : params;
  const uris = filter?.["resourceSubscriptions"];
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === "string") : [];
}
