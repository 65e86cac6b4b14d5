import type { Changes, Tool } from "../capability/registry.ts";
import { isResourceContents, type ResourceContents } from "../capability/content.ts";
import type { CallContext } from "../capability/context.ts";
import type { ResourceDefinition } from "../capability/define.ts";
import type { ForwardedRequest } from "./forward-receiver.ts";
import type { ForwardNews, SandboxMessage } from "./forward-message.ts";
import type { ForwardCall, Forwarder } from "./forwarder.ts";
import { OwlError } from "../errors/owl-error.ts";
import { type Call, contextOf, type Conversation, EgressMeter } from "../call/call.ts";
import { Lifeline } from "../call/lifeline.ts";
import { runBounded } from "../call/run-bounded.ts";
import { validateArguments } from "../call/validate-arguments.ts";
import { silentConversation } from "../mcp/conversations/silent.ts";
import { serverIdOf } from "../sandbox/sandbox-request.ts";
import { runAndEnd, traced } from "../telemetry/tracing/active-span.ts";
import type { Span } from "../telemetry/tracing/span.ts";
import { readTraceContext } from "../telemetry/tracing/trace-context.ts";
import type { Tracer } from "../telemetry/tracing/tracer.ts";
import { sessionIdOf } from "../tools/serve-sandbox-tool.ts";

export interface SandboxOwnersOptions {
  readonly serverId: string;
  readonly forwarder: Forwarder;
  readonly changes: Changes;
  /** For tools that have no time of their own. */
  readonly timeoutMs: number;
  readonly tracer?: Tracer | undefined;
}

type CallFacts = Pick<SandboxMessage, "principal" | "label" | "traceId" | "protocolVersion">;

const FORWARD = { name: "forward", kind: "client" } as const;

/** How far behind the bill of a call may be that is cut off. */
const EGRESS_MS = 200;

/**
 * Sends a call to the server that has its sandbox, and takes such calls of others. The first server governs and records;
 * the one with the sandbox looks whose it is and runs the call.
 */
export class SandboxOwners {
  readonly serverId: string;
  readonly #options: SandboxOwnersOptions;
  readonly #tools = new Map<string, Tool>();
  #files: ResourceDefinition | undefined;

  constructor(options: SandboxOwnersOptions) {
    this.#options = options;
    this.serverId = options.serverId;
  }

  /** The same tool, wherever its sandbox is. */
  tool(tool: Tool): Tool {
    this.#tools.set(tool.name, tool);
    const { name, timeoutMs = this.#options.timeoutMs } = tool;
    return {
      ...tool,
      run: async (input, context) => {
        const owner = this.#otherOwner(sessionIdOf(input));
        if (owner === undefined) return tool.run(input, context);
        const message = { kind: "tool", name, input, timeoutMs, ...factsOf(context) } as const;
        return toOutput(await this.#send(owner, message, context));
      },
    };
  }

  files(definition: ResourceDefinition): ResourceDefinition {
    this.#files = definition;
    const { timeoutMs } = this.#options;
    return {
      ...definition,
      read: async (uri, variables, context) => {
        const owner = this.#otherOwner(variables["session_id"]);
        if (owner === undefined) return definition.read(uri, variables, context);
        const message = { kind: "file", uri, variables: { ...variables }, timeoutMs, ...factsOf(context) } as const;
        return toContents(await this.#send(owner, message, context));
      },
    };
  }

  #send(owner: string, message: SandboxMessage, context: CallContext): Promise<unknown> {
    const { forwarder } = this.#options;
    return traced(FORWARD, (span) => forwarder.send(owner, { ...message, ...placeOf(span) }, listen(context)));
  }

  /** A call of another server, for its principal alone. Where that server traces it, and only there, its trace goes on here. */
  run(message: SandboxMessage, line: ForwardedRequest): Promise<unknown> {
    const parent = readTraceContext(message);
    const root = { traceId: message.traceId, parent, name: `forwarded ${message.kind}`, kind: "server" } as const;
    const span = parent === undefined ? undefined : this.#options.tracer?.begin(root);
    const serve = (): Promise<unknown> => this.#serve(message, line);
    return span === undefined ? serve() : runAndEnd(span, serve);
  }

  async #serve(message: SandboxMessage, line: ForwardedRequest): Promise<unknown> {
    const egress = new EgressMeter();
    const stop = tellEgress(egress, line.tell);
    try {
      return await this.#run(message, this.#callOf(message, line, egress));
    } finally {
      stop();
    }
  }

  async #run(message: SandboxMessage, call: Call): Promise<unknown> {
    const { timeoutMs } = message;
    if (message.kind === "file") {
      const { uri, variables } = message;
      this.#assertMine(variables["session_id"]);
      const read = (life: Lifeline) => this.#files?.read(uri, variables, contextOf(call, life));
      return runBounded(read, { what: "the file", timeoutMs, life: call.life });
    }
    const tool = this.#tools.get(message.name);
    if (tool === undefined) throw new OwlError("tool_not_found", "this server has no such tool");
    this.#assertMine(sessionIdOf(message.input));
    const input: unknown = await validateArguments(tool, message.input);
    const run = (life: Lifeline) => tool.run(input, contextOf(call, life));
    return runBounded(run, { what: `the tool "${tool.name}"`, timeoutMs, life: call.life });
  }

  #otherOwner(sessionId: string | undefined): string | undefined {
    const owner = sessionId === undefined ? undefined : serverIdOf(sessionId);
    return owner === this.serverId ? undefined : owner;
  }

  /** What names no sandbox of this server would make a new one, or travel on. */
  #assertMine(sessionId: string | undefined): void {
    if (sessionId !== undefined && serverIdOf(sessionId) === this.serverId) return;
    throw new OwlError("session_not_found", "a forwarded call must name a sandbox of the server that it is sent to");
  }

  #callOf(message: SandboxMessage, { signal, tell }: ForwardedRequest, egress: EgressMeter): Call {
    const { principal, label, traceId, protocolVersion } = message;
    return {
      caller: {
        principal: { id: principal, scopes: [], claims: {} },
        label,
        transport: "http",
        protocolVersion,
        sessionId: undefined,
      },
      traceId,
      life: Lifeline.of(signal),
      conversation: { ...silentConversation(this.#options.changes), ...telling(tell) },
      meter: (used) => egress.add(used),
    };
  }
}

function placeOf(span: Span | undefined): Pick<SandboxMessage, "traceparent" | "tracestate"> {
  if (span === undefined) return {};
  const { traceparent, state: tracestate } = span;
  return { traceparent, ...(tracestate !== undefined && { tracestate }) };
}

function factsOf({ principal, label, traceId, protocolVersion }: CallContext): CallFacts {
  return { principal: principal.id, ...(label !== undefined && { label }), traceId, protocolVersion };
}

/** What is told while the call runs goes on to the client, and what was moved on its bill. */
function listen(context: CallContext): ForwardCall {
  const used = { bytesMoved: 0 };
  context.meter?.(used);
  const hear = (news: ForwardNews): void => {
    if (news.news === "egress") used.bytesMoved = Math.max(used.bytesMoved, news.bytes);
    else if (news.news === "log") context.log(news.level, news.data, news.logger);
    else if (news.news === "progress") context.progress(news.done, optionsOf(news));
  };
  return { signal: context.signal, hear };
}

type Progress = Extract<ForwardNews, { readonly news: "progress" }>;

function optionsOf({ total, message }: Pick<Progress, "total" | "message">): { total?: number; message?: string } {
  return { ...(total !== undefined && { total }), ...(message !== undefined && { message }) };
}

function telling(tell: ForwardedRequest["tell"]): Pick<Conversation, "wantsProgress" | "progress" | "log"> {
  return {
    wantsProgress: true,
    progress: (done, options = {}) => tell({ news: "progress", done, ...optionsOf(options) }),
    log: (level, data, logger) => tell({ news: "log", level, data, ...(logger !== undefined && { logger }) }),
  };
}

/** Tells it now and then, so that somebody can pay for a call that is cut off, and once more when it is over. */
function tellEgress(egress: EgressMeter, tell: ForwardedRequest["tell"]): () => void {
  let toldBytes = 0;
  const look = (): void => {
    const bytes = egress.bytes();
    if (bytes === toldBytes) return;
    toldBytes = bytes;
    tell({ news: "egress", bytes });
  };
  const timer = setInterval(look, EGRESS_MS).unref();
  return () => {
    clearInterval(timer);
    look();
  };
}

function toOutput(value: unknown): object {
  if (typeof value === "object" && value !== null) return value;
  throw new OwlError("internal", "another server gave an answer that is no result");
}

function toContents(value: unknown): readonly ResourceContents[] {
  if (Array.isArray(value) && value.every(isResourceContents)) return value;
  throw new OwlError("internal", "another server gave an answer that is no file");
}
