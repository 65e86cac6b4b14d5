import {
  CLIENT_CAPABILITIES_META_KEY,
  type JSONRPCRequest,
  ProtocolError,
  type Result,
  Server,
  type ServerCapabilities,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { SKILLS_EXTENSION_ID } from "@modelcontextprotocol/server/ext/skills";
import type { Change } from "../capabilities/changes.ts";
import { OwlError, isOwlError } from "../errors/owl-error.ts";
import type { Caller } from "../pipeline/caller.ts";
import type { Conversation } from "../pipeline/call.ts";
import { Lifeline } from "../pipeline/lifeline.ts";
import { liveConversation } from "./conversations/live.ts";
import type { Question } from "./conversations/questions.ts";
import type { ClientCapabilities, Exchange } from "./exchange.ts";
import { isObject, type RequestId } from "./json-rpc.ts";
import type { Mcp } from "./mcp.ts";
import { registerMethods, registerSkillMethods } from "./register-methods.ts";
import { TASKS_EXTENSION } from "./tasks.ts";
import { isModern, LEGACY_VERSIONS, MODERN_VERSIONS } from "./versions.ts";
import { toWireError } from "./wire-error.ts";

/** What the transport knows of a request, by the id that it gave it. */
export interface RequestFacts {
  readonly caller: Caller;
  readonly traceId: string;
  readonly requestId?: RequestId | undefined;
  readonly closeStream?: () => void;
  /** Takes the conversation of a call that is already running, and says what it will answer. */
  readonly adopt?: (conversation: Conversation) => Promise<Record<string, unknown>>;
}

export interface PeerServerOptions {
  readonly mcp: Mcp;
  readonly era: "legacy" | "modern";
  readonly factsOf: (context: ServerContext) => RequestFacts;
}

const CAPABILITIES: ServerCapabilities = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};

/** Questions wait for a person or a model: the SDK's own minute is too short for either. */
const ANSWER_TIMEOUT_MS = 600_000;

/** One connection on the official SDK: it speaks the protocol, and everything it is asked goes to `Mcp`. */
export class PeerServer extends Server {
  readonly mcp: Mcp;
  /** Resources that this client watches, on revisions where it subscribes one by one. */
  readonly watched: Map<string, Caller> = new Map();
  readonly #factsOf: PeerServerOptions["factsOf"];

  constructor({ mcp, era, factsOf }: PeerServerOptions) {
    const skills = mcp.servesSkills ? { [SKILLS_EXTENSION_ID]: { directoryRead: true } } : {};
    const extensions = era === "modern" ? { extensions: { [TASKS_EXTENSION]: {}, ...skills } } : {};
    super(mcp.serverInfo, {
      capabilities: { ...CAPABILITIES, ...extensions },
      supportedProtocolVersions: era === "modern" ? [...MODERN_VERSIONS, ...LEGACY_VERSIONS] : [...LEGACY_VERSIONS],
    });
    this.mcp = mcp;
    this.#factsOf = factsOf;
    registerMethods(this);
    if (era === "modern" && mcp.servesSkills) registerSkillMethods(this);
  }

  /** Passes on what changes, until the connection closes. For connections that live longer than a request. */
  followChanges(): void {
    this.onclose = this.mcp.changes.subscribe((change) => void this.#tell(change).catch(() => undefined));
  }

  factsOf(context: ServerContext): RequestFacts {
    return this.#factsOf(context);
  }

  exchangeOf(context: ServerContext): Exchange {
    const { caller, traceId, requestId, closeStream = () => undefined } = this.factsOf(context);
    const { mcpReq } = context;
    const modern = isModern(caller.protocolVersion);
    const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope };
    const declared = modern ? envelope[CLIENT_CAPABILITIES_META_KEY] : this.getClientCapabilities();
    const capabilities: ClientCapabilities = isObject(declared) ? declared : {};
    const requestState = mcpReq.requestState();
    if (requestState !== undefined && typeof requestState !== "string")
      throw new OwlError("invalid_params", "requestState must be a string");
    const request = modern ? undefined : (question: Question) => this.#ask(question, context);
    return {
      caller,
      traceId,
      requestId,
      life: Lifeline.of(mcpReq.signal),
      capabilities,
      inputResponses: mcpReq.inputResponses,
      requestState,
      conversation: liveConversation({ context, capabilities, changes: this.mcp.changes, request, closeStream }),
    };
  }

  /** Errors leave in the one shape of ours; what the SDK's schemas refuse is the caller's mistake, not an internal error. */
  protected override _wrapHandler(
    method: string,
    handler: (request: JSONRPCRequest, context: ServerContext) => Promise<Result>,
  ): (request: JSONRPCRequest, context: ServerContext) => Promise<Result> {
    return async (request, context) => {
      try {
        return await handler(request, context);
      } catch (thrown) {
        throw this.#wireError(method, thrown, context);
      }
    };
  }

  #wireError(method: string, thrown: unknown, context: ServerContext): Error {
    if (thrown instanceof ProtocolError) return thrown;
    const { caller, traceId } = this.factsOf(context);
    const error = isOwlError(thrown) ? thrown : invalidParams(method, thrown);
    if (error.kind === "internal" && method !== "tools/call")
      this.mcp.logger.error("request failed", { method, trace_id: traceId, error: thrown });
    const body = toWireError(error, { version: caller.protocolVersion, traceId, withStack: this.mcp.withStack });
    return new ProtocolError(body.code, body.message, body.data);
  }

  async #ask({ method, params }: Question, { mcpReq }: ServerContext): Promise<unknown> {
    return mcpReq.send({ method, params }, { signal: mcpReq.signal, timeout: ANSWER_TIMEOUT_MS });
  }

  /** The policy may have changed since the client began to watch. */
  #mayHearOf(uri: string): boolean {
    const caller = this.watched.get(uri);
    return caller !== undefined && this.mcp.pipeline.view.sees(uri, caller);
  }

  async #tell(change: Change): Promise<void> {
    if (this.transport === undefined) return;
    if (change.kind === "resource") {
      if (isModern(this.getNegotiatedProtocolVersion() ?? "") || this.#mayHearOf(change.uri))
        await this.sendResourceUpdated({ uri: change.uri });
    } else if (change.list === "tools") await this.sendToolListChanged();
    else if (change.list === "prompts") await this.sendPromptListChanged();
    else await this.sendResourceListChanged();
  }
}

/** Our own code throws `OwlError`; anything else out of a handler is the SDK's schema speaking. */
function invalidParams(method: string, thrown: unknown): OwlError {
  const issues = issuesOf(thrown);
  const detail = issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
  return new OwlError("invalid_params", `invalid parameters for ${method}${detail === "" ? "" : `: ${detail}`}`, {
    ...(issues.length > 0 && {
      facts: { issues: issues.map(({ path, message }) => ({ path: path.join("."), message })) },
    }),
    cause: thrown,
  });
}

interface SchemaIssue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** The SDK gives its schema's issues only as JSON in the message. */
function issuesOf(thrown: unknown): SchemaIssue[] {
  const text = thrown instanceof Error ? thrown.message : "";
  const start = text.indexOf("[");
  if (start === -1) return [];
  try {
    const parsed: unknown = JSON.parse(text.slice(start));
    return Array.isArray(parsed) ? parsed.filter(isIssue) : [];
  } catch {
    // Another kind of message: it has no issues to show.
    return [];
  }
}

function isIssue(value: unknown): value is SchemaIssue {
  return isObject(value) && Array.isArray(value["path"]) && typeof value["message"] === "string";
}
