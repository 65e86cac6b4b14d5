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
  /** Names the question, so that its answer is found again when the call is retried. Default: its place in the order of questions. */
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

/** The caller's own sandbox: the same that the built-in tools use, made when it is first needed. */
export interface HandlerSandbox {
  run(
    code: string,
    options?: { readonly language?: "python" | "node"; readonly timeoutSeconds?: number },
  ): Promise<SandboxRun>;
  exec(command: string, options?: { readonly timeoutSeconds?: number }): Promise<SandboxRun>;
  readFile(path: string): Promise<string>;
  writeFile(path: string, content: string): Promise<void>;
}

/** How a client wants a resource, in the words of HTTP. */
export interface ReadWish {
  /** `bytes=0-99`. */
  readonly range?: string;
  /** Digests or entity tags that the client has: what has not changed is not sent again. */
  readonly ifNoneMatch?: string;
  /** The range counts only while this is still the entity tag. */
  readonly ifRange?: string;
}

/** A sandbox as the log and the bill of a call know it. */
export interface UsedSandbox {
  /** What operators call it; absent where it is on another server. */
  readonly name?: string | undefined;
  /** Where it is a container. */
  readonly containerId?: string | undefined;
  /** Over its network so far, both ways. */
  readonly bytesMoved: number;
}

/** What a capability sees of the call it serves. Nothing of MCP, of governance or of the transport shows through. */
export interface CallContext {
  readonly principal: Principal;
  /** What the client calls itself (`X-MCP-Client-ID`); it proves nothing. */
  readonly label?: string | undefined;
  readonly traceId: string;
  /** By W3C Trace Context, for requests to other services; handlers have it while somebody traces. */
  readonly traceparent?: string | undefined;
  /** What belongs to it and goes on with it, where the client sent any. */
  readonly tracestate?: string | undefined;
  /** The MCP session, where the transport has one; calls of stateless clients have none. */
  readonly sessionId: string | undefined;
  /** For a resource that is being read: which part of it is wanted, and what the client has already. */
  readonly wish?: ReadWish;
  /** The protocol revision that this client speaks. */
  readonly protocolVersion: string;
  /** Aborts when the client cancels or goes away, the time-out passes, or the server stops. */
  readonly signal: AbortSignal;

  /** Reports progress to clients that asked for it; does nothing for others. */
  progress(done: number, options?: { readonly total?: number; readonly message?: string }): void;
  /** Sends a log message to the client, if it wants messages of this level. */
  log(level: LogLevel, data: unknown, logger?: string): void;

  /**
   * Asks the person at the client. On revisions without server requests the call ends with the question and
   * runs again **from its start** when the answer has come: do what must happen once after the last question.
   */
  elicit(request: ElicitForm | ElicitUrl, options?: AskOptions): Promise<ElicitAnswer>;
  /** Asks the client's model. The same rule about running again holds as for `elicit`. */
  sample(request: SampleRequest, options?: AskOptions): Promise<SampleAnswer>;
  /** Asks for the client's root folders. The same rule about running again holds as for `elicit`. */
  roots(options?: AskOptions): Promise<readonly Root[]>;

  /**
   * For tools with `task: { start: "explicit" }`: answers the client with a task now and goes on in the background.
   * Questions asked before this call are asked on the call itself, later ones on the task.
   */
  startTask(): Promise<void>;

  /** Whether the caller may know of a resource: what a tool tells of resources must be true to the policy. */
  seesResource?(this: void, uri: string): boolean;

  /** Adds to what this call costs, in the unit that budgets are given in. */
  charge(amount: number): void;

  /** Says which sandbox the call uses; what it moves until the call ends is paid as egress. */
  meter?(used: UsedSandbox): void;

  /** Says that the call was ended by force, and that nobody knows what it would still have charged. */
  forfeit?(): void;

  /** Tells clients to ask for a list again; for definitions that depend on something outside. */
  listChanged(kind: "tools" | "resources" | "prompts"): void;

  /** A place to run things in, isolated from the server and from the handler itself. */
  readonly sandbox?: HandlerSandbox | undefined;

  /** Calls back when `signal` would abort, and costs less than making one. Gives a function that takes it back. */
  onEnd?(listener: () => void): () => void;

  /** Ends the client's event stream early, so that it comes back for the rest; only where the revision resumes streams. */
  closeStream(): void;
}
