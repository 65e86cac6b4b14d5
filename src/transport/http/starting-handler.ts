import type { IncomingMessage, ServerResponse } from "node:http";
import type { Config } from "../../config/schema.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import { traceIdFrom } from "../../mcp/request-observer.ts";
import { sendError, sendJson, tellTraceId } from "./exchange-io.ts";
import { guardOf } from "./guards.ts";
import type { HttpHandler } from "./http-listener.ts";
import { readTarget } from "./request-target.ts";

const LIVE = "/health/live";
const NOT_READY: ReadonlySet<string> = new Set(["/health", "/health/ready"]);
const HEADERS = { "cache-control": "no-store", "retry-after": "1" } as const;

/** Serves requests while the server starts: liveness succeeds, everything else gets 503. */
export function startingHandler(http: Config["http"]): HttpHandler {
  const guard = guardOf(http);
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { path, authority } = readTarget(request);
    guard.check(authority, request.headers.origin);
    if (path === LIVE) return sendJson(response, 200, { status: "ok" }, HEADERS);
    if (NOT_READY.has(path)) return sendJson(response, 503, { status: "starting" }, HEADERS);
    throw new OwlError("starting", "the server is starting");
  };
  return {
    mayLast: () => false,
    handle(request, response) {
      const traceId = traceIdFrom(request.headers["traceparent"]);
      tellTraceId(response, traceId);
      // The request body is not read, and the next request must reach the handler of that time.
      response.shouldKeepAlive = false;
      try {
        answer(request, response);
      } catch (thrown) {
        sendError(response, toOwlError(thrown), { traceId, withStack: false, headers: HEADERS });
      }
    },
  };
}
