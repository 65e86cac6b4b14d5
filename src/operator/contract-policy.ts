/** The part of the contract about what clients may do: policy, tools, skills, handlers and pauses. */
/** `GET clients`: the principals in the ledger, in the policy and of sandboxes, sorted by name. */
export interface ClientList {
  readonly clients: readonly ClientFacts[];
}

export interface ClientFacts {
  readonly client: string;
  readonly calls: number;
  readonly refused: number;
  readonly costMicros: number;
  readonly paused: boolean;
}

/**
 * `GET policy?client&groups&claims&label`: what this client sees and may do. Groups are separated by commas, claims are
 * JSON.
 */
export interface ClientPolicy {
  readonly client: string;
  readonly revision: string;
  readonly tools: readonly ToolPolicy[];
}

export interface ToolPolicy {
  readonly tool: string;
  readonly visible: boolean;
  /** The decision without arguments: `depends` when a rule reads them. */
  readonly decision: "allow" | "deny" | "confirm" | "depends";
  readonly rule: string;
  readonly reason?: string;
}

/** `POST policy/explain`. */
export interface ExplainRequest {
  readonly client: string;
  readonly tool: string;
  readonly args: unknown;
  readonly groups?: readonly string[];
  readonly claims?: unknown;
  readonly label?: string;
}

export interface ExplainAnswer {
  readonly policy: string;
  readonly operation: string;
  readonly decision: "allow" | "deny" | "confirm";
  readonly rule: string;
  readonly reason?: string;
  /** Why the call would fail although it is allowed: its arguments are not valid. */
  readonly mistake?: string;
  readonly visible: boolean;
  readonly confirm?: "operator" | "client";
  readonly limits: readonly { readonly rule: string; readonly limit: number; readonly counts: string }[];
  readonly reserves: number;
  readonly lookedAt: readonly string[];
}

/** `GET reload`. */
export interface ReloadState {
  /** Absent when nothing has been reloaded since the start. */
  readonly at?: string;
  readonly ok: boolean;
  readonly problems: readonly string[];
}

/** `GET tools?client=`: without `client`, all tools. */
export interface ToolList {
  readonly tools: readonly ToolFacts[];
}

export interface ToolFacts {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly toolset: string;
  readonly inputSchema: unknown;
  readonly readOnly: boolean;
  readonly destructive: boolean;
}

/** `POST tools/call`: a call of the operator through the pipeline. */
export interface ToolCallRequest {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface ToolCallAnswer {
  readonly ok: boolean;
  /** MCP content items, empty when the call failed with `error`. */
  readonly content: readonly unknown[];
  readonly structured?: unknown;
  readonly error?: { readonly kind: string; readonly message: string; readonly hint?: string };
  readonly durationMs: number;
}

export interface ProblemFacts {
  readonly file: string;
  readonly line?: number;
  readonly severity: "error" | "warning";
  readonly message: string;
  readonly fix?: string;
}

/** `GET skills`. */
export interface SkillList {
  readonly skills: readonly { readonly uri: string; readonly name: string; readonly description: string }[];
  readonly problems: readonly ProblemFacts[];
}

/** `GET handlers`. */
export interface HandlerList {
  readonly handlers: readonly { readonly tool: string; readonly description: string }[];
  readonly problems: readonly ProblemFacts[];
}

/** `POST pause`. Without `client`: all clients. */
export interface PauseRequest {
  readonly client?: string;
  readonly reason: string;
  /** Cancels calls in flight. */
  readonly cancel?: boolean;
}

/**
 * `POST resume`. The response is the same as of `GET paused` and `POST pause`: `{paused}` as in `Now`. Without
 * `client`: resumes the pause of all clients.
 */
export interface ResumeRequest {
  readonly client?: string;
}
