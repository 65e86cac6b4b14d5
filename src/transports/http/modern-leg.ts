import {
  createMcpHandler,
  LOG_LEVEL_META_KEY,
  type McpHttpHandler,
  type McpServerFactory,
  PROTOCOL_VERSION_META_KEY,
} from "@modelcontextprotocol/server";
import type { IncomingMessage } from "node:http";
import type { Change } from "../../capabilities/changes.ts";
import { Slots } from "../../collections/slots.ts";
import type { Conversation } from "../../pipeline/call.ts";
import type { Caller } from "../../pipeline/caller.ts";
import type { Lifeline } from "../../pipeline/lifeline.ts";
import { silentConversation } from "../../protocol/conversations/silent.ts";
import { answerFastCall, type FastCall, readFastCall, runFastCall } from "../../protocol/fast-call.ts";
import {
  isObject,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type WireErrorBody,
} from "../../protocol/json-rpc.ts";
import { refuseListening } from "../../protocol/listen-guard.ts";
import type { Mcp } from "../../protocol/mcp.ts";
import { declaresParamHeaders, validateParamHeaders } from "../../protocol/param-headers.ts";
import { PeerServer, type RequestFacts } from "../../protocol/peer-server.ts";
import { stoppedAnswer } from "../../protocol/peer-transport.ts";
import { traceIdIn } from "../../protocol/trace-id.ts";
import { isModern, MODERN_VERSIONS } from "../../protocol/versions.ts";
import { completeWireError } from "../../protocol/wire-error.ts";
import { acceptsEventStream, header, type HttpExchange, lifeOf, onClose, sendEmpty, sendJson } from "./exchange-io.ts";
import { pipeAnswer } from "./pipe-answer.ts";
import { quotaHeadersOf } from "./quota-headers.ts";

const NEWEST = MODERN_VERSIONS[0];

/** Whether the message, or the header beside it, says that it speaks a revision without handshake. */
export function isModernMessage(message: JsonRpcRequest | JsonRpcNotification, request: IncomingMessage): boolean {
  const named = header(request, "mcp-protocol-version");
  if (named !== undefined && isModern(named) && /^\d{4}-\d{2}-\d{2}$/.test(named)) return true;
  const meta = message.params?.["_meta"];
  return isObject(meta) && PROTOCOL_VERSION_META_KEY in meta;
}

/** Serves revisions since 2026-07-28: each request stands for itself, and closing its connection cancels it. */
export class ModernLeg {
  readonly #mcp: Mcp;
  readonly #fastPath: boolean;
  readonly #silence: Conversation;
  readonly #handler: McpHttpHandler;
  readonly #facts = new WeakMap<Request, RequestFacts>();
  readonly #unsubscribe: () => void;
  readonly #running = new Slots<Lifeline>();
  readonly #listeners = new Set<Listening>();
  #closing = false;

  constructor({
    mcp,
    keepAliveMs,
    fastPath,
  }: {
    readonly mcp: Mcp;
    readonly keepAliveMs: number;
    readonly fastPath: boolean;
  }) {
    this.#mcp = mcp;
    this.#fastPath = fastPath;
    this.#silence = silentConversation(mcp.changes);
    const makeServer: McpServerFactory = ({ requestInfo }) => {
      const facts = requestInfo === undefined ? undefined : this.#facts.get(requestInfo);
      if (facts === undefined) throw new Error("a request without facts reached the protocol");
      return new PeerServer({ mcp, era: "modern", factsOf: () => facts });
    };
    const onerror = (error: Error): void => mcp.logger.debug("request refused", { error: error.message });
    this.#handler = createMcpHandler(makeServer, { legacy: "reject", keepAliveMs, onerror });
    this.#unsubscribe = mcp.changes.subscribe((change) => this.#tell(change));
  }

  async serve(message: JsonRpcRequest | JsonRpcNotification, arrived: HttpExchange): Promise<void> {
    const named = traceIdIn(message.params);
    const exchange = named === undefined ? arrived : { ...arrived, traceId: named };
    const { principal, label, traceId } = exchange;
    const caller: Caller = { principal, label, transport: "http", protocolVersion: NEWEST, sessionId: undefined };
    const asked = { caller, exchange };
    if (!("id" in message)) return void (await this.#answer(message, asked));
    const { watch, tracing } = this.#mcp;
    const onAnswer = watch?.begin(message, { caller, traceId });
    const answer =
      tracing === undefined
        ? await this.#answer(message, asked)
        : await tracing.serve(message, { caller, traceId }, () => this.#answer(message, asked));
    onAnswer?.(answer);
  }

  /** Sends the answer and gives it back, where it is known whole. */
  async #answer(
    message: JsonRpcRequest | JsonRpcNotification,
    { caller, exchange }: Asked,
  ): Promise<JsonRpcResponse | undefined> {
    if (message.method === "subscriptions/listen") exchange.release();
    const refusal = this.#listenRefusal(message, exchange);
    if (refusal !== undefined) return this.#sendBody(exchange, 200, refusal);
    const call =
      this.#fastPath && "id" in message && hasPlainHeaders(message, exchange.request)
        ? readFastCall(message, NEWEST)
        : undefined;
    if (call !== undefined && "id" in message && !this.#needsHeaderCheck(call, caller))
      return this.#serveFast(message, call, { caller, exchange });
    if ("id" in message) {
      const mismatch = this.#paramHeaderMismatch(message, { caller, exchange });
      if (mismatch !== undefined)
        return this.#sendBody(exchange, 400, { jsonrpc: "2.0", id: message.id, error: mismatch });
    }
    return this.#serveWithSdk(message, { caller, exchange });
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#unsubscribe();
    for (const life of this.#running) life.end();
    await this.#handler.close();
  }

  async #serveFast(message: JsonRpcRequest, call: FastCall, { caller, exchange }: Asked): Promise<JsonRpcResponse> {
    const { response, traceId } = exchange;
    const life = lifeOf(response);
    const options = { mcp: this.#mcp, caller, traceId, requestId: message.id, life, conversation: this.#silence };
    const slot = this.#running.add(life);
    const answer = await answerFastCall(message, runFastCall(call, options), options);
    this.#running.delete(slot);
    if (this.#closing && life.isOver) return this.#refuseStopped(message, { caller, exchange });
    // The protocol fixes this one status; all other errors of a call are part of a good answer.
    const status = "error" in answer && answer.error.code === -32021 ? 400 : 200;
    sendJson(response, status, answer, quotaHeadersOf(answer));
    return answer;
  }

  #refuseStopped({ id }: JsonRpcRequest, { caller, exchange }: Asked): JsonRpcResponse {
    const answer = stoppedAnswer(id, { caller, traceId: exchange.traceId });
    sendJson(exchange.response, 503, answer);
    return answer;
  }

  async #serveWithSdk(
    message: JsonRpcRequest | JsonRpcNotification,
    { caller, exchange }: Asked,
  ): Promise<JsonRpcResponse | undefined> {
    const { request, response, traceId } = exchange;
    const web = new Request("http://localhost/mcp", {
      method: "POST",
      headers: webHeaders(request),
      signal: lifeOf(response).signal,
    });
    this.#facts.set(web, { caller, traceId, requestId: "id" in message ? message.id : undefined });
    if (message.method === "subscriptions/listen") {
      const listening = { message, exchange };
      this.#listeners.add(listening);
      onClose(response, () => this.#listeners.delete(listening));
    }
    const parsedBody = acceptsEventStream(request) ? message : withoutStreaming(message);
    const answer = await this.#handler.fetch(web, { parsedBody });
    if (answer.headers.get("content-type")?.startsWith("text/event-stream") === true) {
      await pipeAnswer(answer, exchange);
      return undefined;
    }
    const text = await answer.text();
    if (this.#closing && text === "" && "id" in message) return this.#refuseStopped(message, { caller, exchange });
    if (text === "") {
      sendEmpty(response, answer.status);
      return undefined;
    }
    const body: unknown = JSON.parse(text);
    return this.#sendBody(exchange, answer.status, body);
  }

  #sendBody({ response, traceId }: HttpExchange, status: number, body: unknown): JsonRpcResponse | undefined {
    const options = { version: NEWEST, traceId, withStack: this.#mcp.withStack };
    const whole = isErrorBody(body) ? { ...body, error: completeWireError(body.error, options) } : body;
    sendJson(response, status, whole, quotaHeadersOf(whole));
    return isResponse(whole) ? whole : undefined;
  }

  /** What somebody must not read they must not watch either. */
  #listenRefusal(message: JsonRpcRequest | JsonRpcNotification, exchange: HttpExchange): JsonRpcResponse | undefined {
    if (!("id" in message)) return undefined;
    const { principal, label, traceId } = exchange;
    const caller: Caller = { principal, label, transport: "http", protocolVersion: NEWEST, sessionId: undefined };
    return refuseListening(this.#mcp, message, { caller, traceId });
  }

  #needsHeaderCheck({ wants }: FastCall, caller: Caller): boolean {
    const tool = "name" in wants ? this.#mcp.pipeline.view.tool(wants.name, caller) : undefined;
    return tool !== undefined && declaresParamHeaders(tool);
  }

  #paramHeaderMismatch({ method, params }: JsonRpcRequest, { caller, exchange }: Asked): WireErrorBody | undefined {
    const { request, traceId } = exchange;
    const name = method === "tools/call" ? params?.["name"] : undefined;
    const tool = typeof name === "string" ? this.#mcp.pipeline.view.tool(name, caller) : undefined;
    return tool === undefined
      ? undefined
      : validateParamHeaders(tool, params?.["arguments"], { headers: request.headers, traceId, version: NEWEST });
  }

  #tell(change: Change): void {
    const { notify } = this.#handler;
    // The policy may have changed since: whoever must not know of what they watch any more hears nothing of it.
    for (const { message, exchange } of this.#listeners)
      if (this.#listenRefusal(message, exchange) !== undefined) exchange.response.destroy();
    if (change.kind === "resource") notify.resourceUpdated(change.uri);
    else if (change.list === "tools") notify.toolsChanged();
    else if (change.list === "prompts") notify.promptsChanged();
    else notify.resourcesChanged();
  }
}

/** Who asks, and over which connection. */
interface Asked {
  readonly caller: Caller;
  readonly exchange: HttpExchange;
}

interface Listening {
  readonly message: JsonRpcRequest | JsonRpcNotification;
  readonly exchange: HttpExchange;
}

/** The headers that mirror the body do so letter by letter; anything else is for the SDK to judge. */
function hasPlainHeaders({ method, params }: JsonRpcRequest, { headers }: IncomingMessage): boolean {
  const meta = params?.["_meta"];
  return (
    headers["mcp-protocol-version"] === NEWEST &&
    headers["mcp-method"] === method &&
    headers["mcp-name"] === params?.[method === "resources/read" ? "uri" : "name"] &&
    isObject(meta) &&
    meta[PROTOCOL_VERSION_META_KEY] === NEWEST
  );
}

/** A client that takes no stream cannot be told of progress or sent log messages, whatever it asks for. */
function withoutStreaming(message: JsonRpcRequest | JsonRpcNotification): JsonRpcRequest | JsonRpcNotification {
  const meta = message.params?.["_meta"];
  if (!isObject(meta)) return message;
  const { progressToken: _token, [LOG_LEVEL_META_KEY]: _level, ...rest } = meta;
  return { ...message, params: { ...message.params, _meta: rest } };
}

function isResponse(body: unknown): body is JsonRpcResponse {
  return isErrorBody(body) || (isObject(body) && isObject(body["result"]));
}

function isErrorBody(body: unknown): body is { readonly error: WireErrorBody } {
  return isObject(body) && isObject(body["error"]);
}

function webHeaders({ headers }: IncomingMessage): Headers {
  const result = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || value === undefined || name === "authorization") continue;
    result.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return result;
}
