import type { Door } from "./targets.ts";

const CLIENT_INFO = { name: "owlclaw-bench", version: "1.0.0" };
const CALL = { jsonrpc: "2.0", method: "tools/call" };

export const META_2026 = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
  "io.modelcontextprotocol/clientCapabilities": {},
};

export const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: CLIENT_INFO },
});

export const INITIALIZED = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });

/** No two calls are the same, so that nobody can answer from memory. */
export function echoText(id: number): string {
  return `hello number ${id}`;
}

export function callBody(door: Door, id: number): string {
  const params = { name: "echo", arguments: { text: echoText(id) } };
  return JSON.stringify({ ...CALL, id, params: door === "http-2026" ? { ...params, _meta: META_2026 } : params });
}

/** Looks for the id and the text as compact JSON has them: enough to catch a wrong or a mixed-up answer, at little cost. */
export function isAnswerTo(id: number, message: string): boolean {
  return (
    message.includes(`"text":"${echoText(id)}"`) && (message.includes(`"id":${id},`) || message.includes(`"id":${id}}`))
  );
}

export interface HttpRequest {
  readonly method: "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The headers that a client of each kind sends with every call. */
export function callHeaders(door: Door): Readonly<Record<string, string>> {
  const common = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
  switch (door) {
    case "http-2026":
      return { ...common, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo" };
    case "http-2025":
      return { ...common, "MCP-Protocol-Version": "2025-11-25" };
    default:
      return common;
  }
}

export function encode({ method, url, headers, body }: HttpRequest): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n${lines.join("")}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
