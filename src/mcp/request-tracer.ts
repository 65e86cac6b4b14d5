import { AsyncLocalStorage } from "node:async_hooks";
import type { JsonRpcRequest, JsonRpcResponse } from "./json-rpc.ts";
import type { RequestOrigin, RequestTracing } from "./request-observer.ts";
import { sessionDigest } from "../telemetry/redact.ts";
import { runInSpan } from "../telemetry/tracing/active-span.ts";
import { type Attributes, type AttributeValue, clockMs, type Span } from "../telemetry/tracing/span.ts";
import { readTraceContext, type TraceContext, traceContextIn } from "../telemetry/tracing/trace-context.ts";
import type { Tracer } from "../telemetry/tracing/tracer.ts";
import type { Caller } from "../call/call.ts";
import { isSupported } from "./versions.ts";

interface Arrival {
  readonly parent: TraceContext | undefined;
  readonly startMs: number;
  identifiedMs: number | undefined;
}

export interface KnownNames {
  isTool(name: string): boolean;
  isPrompt(name: string): boolean;
}

type Answer = JsonRpcResponse | undefined;

/** One span for each request, by OpenTelemetry's conventions for MCP servers. It contains no text that people wrote. */
export class RequestTracer implements RequestTracing {
  readonly #tracer: Tracer;
  readonly #names: KnownNames;
  readonly #arrivals = new AsyncLocalStorage<Arrival>();

  constructor(tracer: Tracer, names: KnownNames) {
    this.#tracer = tracer;
    this.#names = names;
  }

  arrived<T>(carrier: unknown, serve: () => T): T {
    const arrival = { parent: readTraceContext(carrier), startMs: clockMs(), identifiedMs: undefined };
    return this.#arrivals.run(arrival, serve);
  }

  identified(): void {
    const arrival = this.#arrivals.getStore();
    if (arrival !== undefined) arrival.identifiedMs = clockMs();
  }

  async serve(request: JsonRpcRequest, origin: RequestOrigin, serve: () => Promise<Answer>): Promise<Answer> {
    const arrival = this.#arrivals.getStore();
    const target = this.#targetOf(request);
    const method = knownMethod(request.method);
    const span = this.#tracer.begin({
      traceId: origin.traceId,
      parent: traceContextIn(request.params) ?? arrival?.parent,
      name: target === undefined ? method : `${method} ${target.value}`,
      kind: "server",
      attributes: { "mcp.method.name": method, ...attributesOf(request, origin), ...target?.attributes },
      ...(arrival !== undefined && { startMs: arrival.startMs }),
    });
    if (span === undefined) return serve();
    recordIdentity(span, arrival);
    const answer = await runInSpan(span, serve);
    if (answer !== undefined && "error" in answer) span.set("rpc.response.status_code", String(answer.error.code));
    const errorType = answerErrorType(answer);
    span.end(errorType === "" ? undefined : errorType);
    return answer;
  }

  /** The target of the request, if it exists on this server: callers can invent any name. */
  #targetOf({ method, params }: JsonRpcRequest): { value: string; attributes: Attributes } | undefined {
    const name = params?.["name"];
    if (typeof name !== "string") return undefined;
    if (method === "tools/call" && this.#names.isTool(name))
      return { value: name, attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name } };
    if (method === "prompts/get" && this.#names.isPrompt(name))
      return { value: name, attributes: { "gen_ai.prompt.name": name } };
    return undefined;
  }
}

function attributesOf({ id }: JsonRpcRequest, { caller }: RequestOrigin): Attributes {
  const { protocolVersion, sessionId, transport } = caller;
  const attributes: Record<string, AttributeValue> = {
    "mcp.protocol.version": protocolVersion,
    "network.transport": networkTransport(transport),
  };
  // A text as id could be anything, so only numbers are recorded, which is what clients use.
  if (typeof id === "number") attributes["jsonrpc.request.id"] = String(id);
  if (transport !== "stdio") attributes["network.protocol.name"] = "http";
  if (transport !== "stdio" && sessionId !== undefined) attributes["mcp.session.id"] = sessionDigest(sessionId);
  return attributes;
}

function recordIdentity(span: Span, arrival: Arrival | undefined): void {
  if (arrival?.identifiedMs === undefined) return;
  span.record({ name: "auth", startMs: arrival.startMs, endMs: arrival.identifiedMs });
}

/** The shared name for everything that callers invent. */
export const UNKNOWN = "unknown";

/** The methods of the protocol and of OwlClaw. */
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

/** Empty when the request succeeded. */
export function answerErrorType(answer: JsonRpcResponse | undefined): string {
  if (answer === undefined) return "";
  if ("result" in answer) return answer.result["isError"] === true ? "tool_error" : "";
  const { data } = answer.error;
  const kind = typeof data === "object" && data !== null && "kind" in data ? data.kind : undefined;
  return typeof kind === "string" ? kind : UNKNOWN;
}

/** The revision, if the server supports it. */
export function knownVersion(version: string): string {
  return isSupported(version) ? version : UNKNOWN;
}

/** What carries the messages of a transport, as OpenTelemetry names it. */
export function networkTransport(transport: Caller["transport"]): "pipe" | "tcp" {
  return transport === "stdio" ? "pipe" : "tcp";
}
