import { expect } from "vitest";

export const CLIENT_INFO = { name: "owlclaw-tests", version: "1.0.0" };
export const MODERN = "2026-07-28";
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** What `JSON.parse` gives: data of a stranger that nobody has looked at. */
export type Unchecked = ReturnType<typeof JSON.parse>;

/** A message from the server, as loosely typed as a stranger's. */
export interface JsonRpcAnswer {
  readonly jsonrpc: string;
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Record<string, Unchecked>;
  readonly result?: Record<string, Unchecked>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Record<string, Unchecked> };
}

/** The parameters of a request that names its revision itself. */
export function envelope(
  params: Record<string, unknown>,
  capabilities: Record<string, unknown> = {},
  meta: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    ...params,
    _meta: {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
      "io.modelcontextprotocol/clientCapabilities": capabilities,
      ...meta,
    },
  };
}

/** The headers that repeat the body of such a request. */
export function modernHeaders(method: string, params: Record<string, unknown> = {}): Record<string, string> {
  const name = params["name"] ?? params["uri"] ?? params["taskId"];
  return {
    "mcp-protocol-version": MODERN,
    "mcp-method": method,
    ...(typeof name === "string" && { "mcp-name": name }),
  };
}

/** Beside every result of a call: what is left to its caller. */
export const WITH_QUOTA = { _meta: { "owlclaw/quota": expect.any(Object) } };

export function text(answer: JsonRpcAnswer): string | undefined {
  return answer.result?.["content"]?.[0]?.text;
}

/** What every error carries, whatever its kind and era. */
export function expectedData(kind: string, facts: Record<string, unknown> = {}): Record<string, unknown> {
  return expect.objectContaining({
    kind,
    message: expect.any(String),
    trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    retryable: expect.any(Boolean),
    ...facts,
  }) as Record<string, unknown>;
}
