import type { Principal } from "../auth/principal.ts";
import type { ContentBlock } from "./content.ts";

export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

export interface ElicitForm {
  readonly message: string;
  /** A flat JSON Schema object of primitive fields, as MCP's elicitation allows. */
  readonly requestedSchema: Readonly<Record<string, unknown>>;
}

export interface ElicitUrl {
  readonly message: string;
  readonly url: string;
}

export type ElicitAnswer =
  | { readonly action: "accept"; readonly content?: Readonly<Record<string, unknown>> }
  | { readonly action: "decline" | "cancel" };

export interface SampleRequest {
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly content: ContentBlock }[];
  readonly maxTokens: number;
  readonly systemPrompt?: string;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly modelPreferences?: Readonly<Record<string, unknown>>;
}

export interface SampleAnswer {
  readonly role: "user" | "assistant";
  readonly content: ContentBlock | readonly ContentBlock[];
  readonly model: string;
  readonly stopReason?: string;
}

export interface Root {
  readonly uri: string;
  readonly name?: string;
}

export interface AskOptions {
  /** Identifies the question when the call is retried with its answer. Default: its position among the call's questions. */
  readonly key?: string;
}

export interface SandboxRun {
  readonly status: "ok" | "error" | "timeout" | "cancelled" | "crashed";
  readonly stdout: string;
  readonly stderr: string;
  /** Of the last expression, as text; only for code. */
  readonly value?: string;
  /** What the code threw, with its traceback. */
  readonly error?: string;
  readonly exitCode?: number;
}

/** The caller's sandbox, which the built-in tools use too. It is created when it is first used. */
export interface HandlerSandbox {
  run(
    code: string,
    options?: { readonly language?: "python" | "node"; readonly timeoutSeconds?: number },
  ): Promise<SandboxRun>;
  exec(command: string, options?: { readonly timeoutSeconds?: number }): Promise<SandboxRun>;
  readFile(path: string): Promise<string>;
  writeFile(path: string, content: string): Promise<void>;
}

/** Which part of a resource a client requests, with the semantics of HTTP. */
export interface ReadOptions {
  /** `bytes=0-99`. */
  readonly range?: string;
  /** Digests or entity tags of the client's copies: unchanged contents are not sent again. */
  readonly ifNoneMatch?: string;
  /** The range counts only while this is still the entity tag. */
  readonly ifRange?: string;
}

/** The sandbox of a call, for its log line and its cost. */
export interface UsedSandbox {
  /** Shown to operators; absent when the sandbox is on another server. */
  readonly name?: string | undefined;
  /** Set when it runs in a container. */
  readonly containerId?: string | undefined;
  /** Network traffic so far, both directions. */
  readonly bytesMoved: number;
}

/** The call that a capability serves. It exposes nothing of MCP, of governance or of the transport. */
export interface CallContext {
  readonly principal: Principal;
  /** The client's label (`X-MCP-Client-ID`). It does not prove an identity. */
  readonly label?: string | undefined;
  readonly traceId: string;
  /** W3C Trace Context for requests to other services; set when the call is traced. */
  readonly traceparent?: string | undefined;
  /** The client's `tracestate`, to be passed on with `traceparent`. */
  readonly tracestate?: string | undefined;
  /** The MCP session; undefined for stateless clients. */
  readonly sessionId: string | undefined;
  /** Set while a resource is read. */
  readonly readOptions?: ReadOptions;
  /** The client's protocol revision. */
  readonly protocolVersion: string;
  /** Aborts when the client cancels or disconnects, the timeout passes, or the server stops. */
  readonly signal: AbortSignal;

  /** Reports progress to clients that asked for it; does nothing for others. */
  progress(done: number, options?: { readonly total?: number; readonly message?: string }): void;
  /** Sends a log message to the client, if it wants messages of this level. */
  log(level: LogLevel, data: unknown, logger?: string): void;

  /**
   * Asks the user of the client. On revisions without server requests the call ends with the question and
   * runs again **from its start** with the answer: put side effects that must happen once after the last question.
   */
  elicit(request: ElicitForm | ElicitUrl, options?: AskOptions): Promise<ElicitAnswer>;
  /** Asks the client's model. The call may run again, as with `elicit`. */
  sample(request: SampleRequest, options?: AskOptions): Promise<SampleAnswer>;
  /** Asks for the client's root folders. The call may run again, as with `elicit`. */
  roots(options?: AskOptions): Promise<readonly Root[]>;

  /**
   * For tools with `task: { start: "explicit" }`: answers the client with a task and continues in the background.
   * Questions asked before this call are asked on the call itself, later ones on the task.
   */
  startTask(): Promise<void>;

  /** Whether policy lets the caller see a resource. Tools must not mention others. */
  seesResource?(this: void, uri: string): boolean;

  /** Adds to the cost of this call, in the unit of budgets. */
  charge(amount: number): void;

  /** Names the sandbox of the call. Its network traffic until the call ends is part of the call's cost. */
  meter?(used: UsedSandbox): void;

  /** Says that the call was killed, so that its full cost is unknown: the reserved amount is charged. */
  forfeit?(): void;

  /** Tells clients to request a list again, for definitions that depend on external state. */
  listChanged(kind: "tools" | "resources" | "prompts"): void;

  /** Isolated from the server and from the handler. */
  readonly sandbox?: HandlerSandbox | undefined;

  /** Calls back when `signal` would abort, without creating a signal. Returns a function that removes the listener. */
  onEnd?(listener: () => void): () => void;

  /** Closes the client's event stream, so that the client reconnects for the rest; only on revisions with resumable streams. */
  closeStream(): void;
}
