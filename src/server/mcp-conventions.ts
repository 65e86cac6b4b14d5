import type { Caller } from "../call/caller.ts";
import type { JsonRpcResponse } from "../mcp/json-rpc.ts";
import { isSupported } from "../mcp/versions.ts";

/** Whatever callers invent shares one name. */
export const UNKNOWN = "unknown";

/** The methods of the protocol, and our own. */
const METHODS: ReadonlySet<string> = new Set(
  [
    ["initialize", "ping", "server/discover", "mcp.capabilities", "logging/setLevel", "completion/complete"],
    ["tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"],
    ["resources/subscribe", "resources/unsubscribe", "subscriptions/listen", "resources/directory/read"],
    ["prompts/list", "prompts/get", "tasks/get", "tasks/update", "tasks/cancel"],
  ].flat(),
);

/** The method, if it is one that exists. */
export function knownMethod(method: string): string {
  return METHODS.has(method) ? method : UNKNOWN;
}

/** Empty when all went well. */
export function answerErrorType(answer: JsonRpcResponse | undefined): string {
  if (answer === undefined) return "";
  if ("result" in answer) return answer.result["isError"] === true ? "tool_error" : "";
  const { data } = answer.error;
  const kind = typeof data === "object" && data !== null && "kind" in data ? data.kind : undefined;
  return typeof kind === "string" ? kind : UNKNOWN;
}

/** The revision, if it is one that we speak. */
export function knownVersion(version: string): string {
  return isSupported(version) ? version : UNKNOWN;
}

/** What carries the transport, as OpenTelemetry names it. */
export function networkTransport(transport: Caller["transport"]): "pipe" | "tcp" {
  return transport === "stdio" ? "pipe" : "tcp";
}
