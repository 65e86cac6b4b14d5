import { OwlError } from "../../errors/owl-error.ts";
import type { Incoming, JsonRpcResponse, Parsed } from "../../mcp/json-rpc.ts";
import { hasBatches, isSupported, unsupportedVersion } from "../../mcp/versions.ts";
import { errorAnswer } from "../../mcp/wire-error.ts";
import { header, type SessionExchange } from "./exchange-io.ts";

export type InvalidItem = Incoming & { readonly kind: "invalid" };

/** Batches exist in one revision only. */
export function itemsOf(parsed: Parsed, version: string): readonly Incoming[] {
  if (!parsed.batch) return [parsed.item];
  if (!hasBatches(version))
    throw new OwlError("invalid_request", `revision ${version} has no batches`, {
      hint: "send one message at a time",
    });
  return parsed.items;
}

export function refusalOf(
  { id, error }: InvalidItem,
  options: { readonly traceId: string; readonly version: string; readonly withStack: boolean },
): JsonRpcResponse {
  return errorAnswer(id, error, options);
}

export function assertVersion({ request }: Pick<SessionExchange, "request">): void {
  const version = header(request, "mcp-protocol-version");
  if (version !== undefined && !isSupported(version)) throw unsupportedVersion(version);
}
