import { AsyncLocalStorage } from "node:async_hooks";
import type { JsonRpcRequest, JsonRpcResponse } from "../mcp/json-rpc.ts";
import type { RequestTracing } from "../mcp/request-tracing.ts";
import type { RequestOrigin } from "../mcp/request-watch.ts";
import { sessionDigest } from "../telemetry/session-digest.ts";
import { runInSpan } from "../telemetry/tracing/active-span.ts";
import { type Attributes, type AttributeValue, clockMs, type Span } from "../telemetry/tracing/span.ts";
import { readTraceContext, type TraceContext, traceContextIn } from "../telemetry/tracing/trace-context.ts";
import type { Tracer } from "../telemetry/tracing/tracer.ts";
import { answerErrorType, knownMethod, networkTransport } from "./mcp-conventions.ts";

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

/** One span for each request, by OpenTelemetry's conventions for MCP servers. Nothing that people wrote is in it. */
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

  /** What the request is about, where it is one of the few things that exist: callers invent names as they like. */
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
  // Texts are the client's own, and could be anything; numbers are what clients use.
  if (typeof id === "number") attributes["jsonrpc.request.id"] = String(id);
  if (transport !== "stdio") attributes["network.protocol.name"] = "http";
  if (transport !== "stdio" && sessionId !== undefined) attributes["mcp.session.id"] = sessionDigest(sessionId);
  return attributes;
}

function recordIdentity(span: Span, arrival: Arrival | undefined): void {
  if (arrival?.identifiedMs === undefined) return;
  span.record({ name: "auth", startMs: arrival.startMs, endMs: arrival.identifiedMs });
}
