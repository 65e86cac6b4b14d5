import type { IncomingMessage, ServerResponse } from "node:http";
import type { HostGuard } from "./guards.ts";
import { sendEmpty } from "./exchange-io.ts";

const REQUEST_HEADERS =
  "Content-Type, Content-Digest, Accept, Authorization, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-MCP-Client-ID, traceparent, tracestate";
const EXPOSED_HEADERS = "Mcp-Session-Id, WWW-Authenticate, X-Trace-Id";
const ONE_DAY_SECONDS = "86400";

/** Adds what a browser needs to let an allowed page read the answer. Never with credentials: tokens travel in a header. */
export function addCorsHeaders(request: IncomingMessage, response: ServerResponse, guard: HostGuard): void {
  const { origin } = request.headers;
  if (origin === undefined || !guard.isAllowedOrigin(origin)) return;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", EXPOSED_HEADERS);
  response.setHeader("vary", "Origin");
}

/** Answers a preflight; says whether it was one. */
export function answerPreflight(
  request: IncomingMessage,
  response: ServerResponse,
  allowedMethods: () => string,
): boolean {
  if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) return false;
  if (!response.hasHeader("access-control-allow-origin")) return false;
  const asked = request.headers["access-control-request-headers"];
  const custom =
    asked
      ?.split(",")
      .map((name) => name.trim())
      .filter((name) => /^mcp-param-[a-z0-9-]{1,64}$/i.test(name)) ?? [];
  sendEmpty(response, 204, {
    "access-control-allow-methods": `${allowedMethods()}, OPTIONS`,
    "access-control-allow-headers": [REQUEST_HEADERS, ...custom].join(", "),
    "access-control-max-age": ONE_DAY_SECONDS,
  });
  return true;
}
