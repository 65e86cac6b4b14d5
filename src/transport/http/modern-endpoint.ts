import { PROTOCOL_VERSION_META_KEY } from "@modelcontextprotocol/server";
import type { IncomingMessage } from "node:http";
import { toOwlError } from "../../errors/owl-error.ts";
import type { Caller } from "../../call/call.ts";
import { Connection } from "../../mcp/connection.ts";
import { isObject, type JsonRpcNotification, type JsonRpcRequest, type JsonRpcResponse } from "../../mcp/json-rpc.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { validateParamHeaders } from "../../mcp/param-headers.ts";
import { assertMirrored } from "../../mcp/mirror-headers.ts";
import type { MirrorHeaders } from "../../mcp/request-envelope.ts";
import { isModern, NEWEST_MODERN_VERSION } from "../../mcp/versions.ts";
import {
  acceptsEventStream,
  header,
  type HttpExchange,
  lifeOf,
  sendEmpty,
  sendError,
  sendJson,
} from "./exchange-io.ts";
import { PlainStream } from "./event-stream.ts";
import { quotaHeadersOf } from "./quota-headers.ts";

/** Whether the message, or its header, names a revision without handshake. */
export function isModernMessage(message: JsonRpcRequest | JsonRpcNotification, request: IncomingMessage): boolean {
  const named = header(request, "mcp-protocol-version");
  if (named !== undefined && isModern(named) && /^\d{4}-\d{2}-\d{2}$/.test(named)) return true;
  const meta = message.params?.["_meta"];
  return isObject(meta) && PROTOCOL_VERSION_META_KEY in meta;
}

/** Requests of revisions since 2026-07-28. Each is independent, and closing its connection cancels it. */
export class ModernEndpoint {
  readonly #mcp: Mcp;
  readonly #keepAliveMs: number;
  readonly #connection: Connection;

  constructor({ mcp, keepAliveMs }: { readonly mcp: Mcp; readonly keepAliveMs: number }) {
    this.#mcp = mcp;
    this.#keepAliveMs = keepAliveMs;
    this.#connection = new Connection({ mcp });
  }

  async serve(message: JsonRpcRequest | JsonRpcNotification, exchange: HttpExchange): Promise<void> {
    if ("id" in message) await this.#serveRequest(message, exchange);
    else this.#takeNotification(message, exchange);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  async #serveRequest(message: JsonRpcRequest, exchange: HttpExchange): Promise<void> {
    const { request, response, principal, label, traceId } = exchange;
    const caller: Caller = {
      principal,
      label,
      transport: "http",
      protocolVersion: NEWEST_MODERN_VERSION,
      sessionId: undefined,
    };
    const isSubscription = message.method === "subscriptions/listen";
    if (isSubscription) exchange.release();
    const canStream = isSubscription || acceptsEventStream(request);
    const stream = new PlainStream(exchange, { keepAliveMs: this.#keepAliveMs, canStream });
    let isRefused = true;
    const answer = await this.#connection.request(message, {
      caller,
      traceId,
      gone: lifeOf(response),
      canStream,
      stream: (sent) => stream.send(sent),
      cut: () => response.destroy(),
      check: () => {
        this.#checkHeaders(message, caller, request);
        isRefused = false;
      },
    });
    if (answer === undefined || stream.finish([answer])) return;
    sendJson(response, isRefused ? 400 : statusOf(answer), answer, quotaHeadersOf(answer));
  }

  /** There is no state between requests, so notifications are validated and have no effect. */
  #takeNotification(message: JsonRpcNotification, { request, response, traceId }: HttpExchange): void {
    try {
      assertMirrored(message, mirrorHeadersOf(request));
      sendEmpty(response, 202);
    } catch (thrown) {
      const { withStack } = this.#mcp;
      sendError(response, toOwlError(thrown), { traceId, withStack, version: NEWEST_MODERN_VERSION, status: 400 });
    }
  }

  #checkHeaders(message: JsonRpcRequest, caller: Caller, request: IncomingMessage): void {
    const { method, params } = message;
    assertMirrored(message, mirrorHeadersOf(request));
    const name = method === "tools/call" ? params?.["name"] : undefined;
    const tool = typeof name === "string" ? this.#mcp.pipeline.view.tool(name, caller) : undefined;
    if (tool !== undefined) validateParamHeaders(tool, params?.["arguments"], request.headers);
  }
}

function mirrorHeadersOf(request: IncomingMessage): MirrorHeaders {
  return {
    version: header(request, "mcp-protocol-version"),
    method: header(request, "mcp-method"),
    name: header(request, "mcp-name"),
  };
}

/** The protocol fixes these statuses. All other errors are sent with 200. */
function statusOf(answer: JsonRpcResponse): number {
  const kind = "error" in answer && isObject(answer.error.data) ? answer.error.data["kind"] : undefined;
  if (kind === "missing_capability") return 400;
  if (kind === "method_not_found") return 404;
  return kind === "shutting_down" ? 503 : 200;
}
