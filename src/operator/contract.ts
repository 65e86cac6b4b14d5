/**
 * The messages between the page and the server under `/dashboard/api`. Types only, so that the page imports no code of
 * the server. Times are ISO texts, money is in whole micro-units. A sandbox is identified by its instance name, never
 * by the session id, which would give access to it.
 */
import type { MissingText } from "./contract-files.ts";

/** The body of every error response. */
export interface ErrorAnswer {
  readonly error: { readonly kind: string; readonly message: string; readonly hint?: string };
}

/** `GET session`, and the response of `POST login {token}`. */
export interface SessionAnswer {
  readonly operator: string;
  /** Required in the header `x-owlclaw-csrf` of every POST, PUT and DELETE. */
  readonly csrf: string;
  /**
   * When the session ends unless it is used before. Requests with the header `x-owlclaw-idle`, and streams, do not
   * count as use.
   */
  readonly expiresAt: string;
}

export interface LoginRequest {
  readonly token: string;
}

/** `GET login`, with or without a session: how an operator logs in. */
export interface LoginFacts {
  /** `token`: the form accepts a token. `link`: auth is off, and only a one-time link gives access. */
  readonly by: "token" | "link";
  readonly hint: string;
  /** The current session; null without one. */
  readonly session: SessionAnswer | null;
}

export interface SandboxNow {
  readonly id: string;
  /** The sandbox in ledger rows, for `ledger?sandbox=`. */
  readonly ledgerId: string;
  readonly state: string;
  readonly owner: string;
  readonly template: string;
  readonly flavor: string;
  readonly runtime: string;
  readonly createdAt: string;
  readonly lastUsedAt: string;
  readonly expiresAt: string;
  /** Per cent of one core. Absent when it is not measured. */
  readonly cpuPercent?: number;
  readonly memoryBytes?: number;
  /** The tool that runs in the sandbox. */
  readonly running: string | null;
  readonly takenOverBy?: string;
}

/** The current stage of a call in the pipeline. */
export type CallStage = "arguments" | "policy" | "approval" | "running" | "recording";

export interface CallNow {
  readonly id: string;
  readonly principal: string;
  readonly label?: string;
  readonly tool: string;
  readonly startedAt: string;
  readonly sandbox?: string;
  readonly stage: CallStage;
}

export interface QueueNow {
  /** Calls in flight. */
  readonly running: number;
  /** Calls that wait for an operator. */
  readonly waiting: number;
  /** Sandboxes in the warm pool, and all sandboxes that are alive. */
  readonly ready: number;
  readonly alive: number;
  readonly most: number;
}

export interface HealthNow {
  readonly status: "ok" | "degraded" | "unavailable";
  readonly checks: Readonly<Record<string, CheckNow>>;
}

export interface CheckNow {
  readonly status: "ok" | "degraded" | "down" | "starting";
  readonly message: string;
}

/** A pause of one client, or of all clients. */
export interface Pause {
  /** `*`: all clients. */
  readonly client: string;
  readonly by: string;
  readonly reason: string;
  readonly since: string;
}

/** `GET now`, and the event `now` of `GET live`. */
export interface Now {
  readonly version: string;
  readonly startedAt: string;
  readonly sandboxes: readonly SandboxNow[];
  readonly calls: readonly CallNow[];
  readonly queue: QueueNow;
  readonly health: HealthNow;
  /** The ids of the calls that wait for an operator. Their number alone does not show that they have changed. */
  readonly approvals: readonly string[];
  readonly paused: readonly Pause[];
}

/**
 * The event `change` of `GET live`: only the parts that have changed. Ended sandboxes and calls are in `sandboxesGone`
 * and `callsGone`.
 */
export interface NowChange {
  readonly sandboxes?: readonly SandboxNow[];
  readonly sandboxesGone?: readonly string[];
  readonly calls?: readonly CallNow[];
  readonly callsGone?: readonly string[];
  readonly queue?: QueueNow;
  readonly health?: HealthNow;
  readonly approvals?: readonly string[];
  readonly paused?: readonly Pause[];
}

/** `GET sandboxes/:id`. */
export interface SandboxDetail extends SandboxNow {
  readonly labels: Readonly<Record<string, string>>;
  readonly limits: Readonly<Record<string, number>>;
  readonly networkAllow: readonly string[];
  /** The path of the workspace. */
  readonly workspace: string;
  /** The views and actions that this sandbox supports. */
  readonly can: readonly SandboxAbility[];
}

export type SandboxAbility =
  | "stop"
  | "extend"
  | "destroy"
  | "files"
  | "changes"
  | "processes"
  | "network"
  | "takeover"
  | "browser";

/** `POST sandboxes/:id/extend`. */
export interface ExtendRequest {
  readonly minutes: number;
}

/** `POST sandboxes/:id/terminal`. */
export type TerminalRequest =
  | { readonly input: string }
  | { readonly resize: { readonly cols: number; readonly rows: number } };

export interface LedgerLine {
  readonly seq: number;
  readonly time: string;
  readonly client: string;
  readonly label: string | null;
  readonly transport: string;
  readonly kind: string;
  readonly tool: string;
  readonly decision: string;
  readonly rule: string;
  readonly outcome: string;
  readonly errorKind: string | null;
  readonly durationMs: number;
  readonly costMicros: number;
  readonly sandbox: string | null;
  readonly traceId: string;
  /** More than 1 when refusals of the same kind were counted in one row. */
  readonly count: number;
}

/**
 * `GET ledger?client&tool&kind&decision&outcome&rule&trace&sandbox&from&to&text&before&after&limit`. Newest first.
 * `before`: rows older than this number. `after`: the oldest rows newer than this number, also newest first.
 */
export interface LedgerPage {
  readonly rows: readonly LedgerLine[];
  /** The number of rows that match the filter. Absent when they were not counted. */
  readonly total?: number;
  /** Whether there are older rows. */
  readonly more: boolean;
  /**
   * The value of `before=` for the next page. With `text` a page may have few rows, or none, because one request
   * searches a limited number of rows: older ones may match.
   */
  readonly next?: number;
  /** The newest row that was searched, whether it matched or not. Request later rows with `after=` this number. */
  readonly newest?: number;
}

/** `GET ledger/:seq`. */
export interface LedgerDetail extends LedgerLine {
  readonly calledAs: string;
  readonly args: unknown;
  readonly result: unknown;
  readonly policyRevision: string;
  readonly flags: readonly string[];
  readonly hash: string;
  readonly previousHash: string | null;
  /** Stages of the pipeline, while the server still remembers them. */
  readonly stages?: readonly { readonly name: string; readonly durationMs: number }[];
}

/** `GET ledger/timeline?…&buckets=`. */
export interface LedgerTimeline {
  readonly from: string;
  readonly to: string;
  readonly bucketMs: number;
  readonly buckets: readonly TimelineBucket[];
}

export interface TimelineBucket {
  readonly start: string;
  readonly allowed: number;
  readonly refused: number;
  readonly failed: number;
}

/** `POST ledger/verify`. */
export interface LedgerVerification {
  readonly ok: boolean;
  readonly rows: number;
  readonly problem?: string;
}

export interface ApprovalNow {
  readonly id: string;
  readonly principal: string;
  readonly label?: string;
  readonly tool: string;
  readonly args: unknown;
  readonly rule: string;
  readonly reason?: string;
  readonly traceId: string;
  readonly createdAt: string;
  readonly expiresAt: string;
  /** The sandbox that the arguments of the call name. */
  readonly sandbox?: string;
  /** The change to a file that the call would make, when it is known. */
  readonly change?: ProposedChange;
}

export interface ProposedChange {
  readonly path: string;
  /** Absent for a new file, and for one that could not be read. */
  readonly before?: string;
  /** Why `before` is absent, for a file that exists or may exist. */
  readonly beforeMissing?: MissingText;
  readonly after: string;
  /** The texts are parts of the file: `after` is appended, or replaces `before`. */
  readonly isPart?: boolean;
}

/** `GET approvals`. */
export interface ApprovalList {
  readonly approvals: readonly ApprovalNow[];
}

/** `POST approvals/:id`. */
export interface ApprovalDecision {
  readonly decision: "approve" | "deny";
  readonly reason: string;
}

/** The part of the contract about costs and limits. */
export interface SpendCount {
  readonly calls: number;
  readonly refused: number;
  readonly failed: number;
  readonly costMicros: number;
}

/** `GET spend?range=week|month|quarter`, or `?from&to`. Default: the last 35 days. */
export interface Spend {
  /** The time zone of days and months. */
  readonly timeZone: string;
  readonly from: string;
  /** Days in this time zone, such as `2026-11-15`: the day of `from`, and the current day. */
  readonly firstDay: string;
  readonly today: string;
  readonly total: SpendCount;
  readonly clients: readonly (SpendCount & { readonly client: string })[];
  readonly tools: readonly (SpendCount & { readonly tool: string })[];
  readonly days: readonly (SpendCount & { readonly day: string })[];
  /** The cost of this month so far, and the forecast for the whole month at the same rate. */
  readonly month: { readonly usedMicros: number; readonly forecastMicros: number };
  /** The budgets of this month, for clients that have one. */
  readonly budgets: readonly BudgetState[];
  readonly nearLimits: readonly NearLimit[];
}

export interface BudgetState {
  readonly client: string;
  readonly usedMicros: number;
  readonly limitMicros: number;
  /** The forecast for the whole month at the rate of this month so far. */
  readonly forecastMicros: number;
}

export interface NearLimit {
  readonly client: string;
  readonly limit: "per_minute" | "per_day" | "concurrency" | "budget";
  readonly used: number;
  readonly most: number;
}
