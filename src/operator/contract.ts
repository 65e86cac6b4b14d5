/**
 * What the page and the server say to each other under `/dashboard/api`: types only, so that the page takes nothing else
 * of the server. Times are ISO texts, money is in whole micro-units. A sandbox is named by its cell's name, never by the
 * session id that would open it to a client.
 */
import type { MissingText } from "./contract-files.ts";

/** Every answer that is none. */
export interface ErrorAnswer {
  readonly error: { readonly kind: string; readonly message: string; readonly hint?: string };
}

/** `GET session`, and what `POST login {token}` answers. */
export interface SessionAnswer {
  readonly operator: string;
  /** To be sent as the header `x-owlclaw-csrf` with every POST, PUT and DELETE. */
  readonly csrf: string;
  /** When it ends unless it is used before. Requests with the header `x-owlclaw-idle`, and streams, are no use. */
  readonly expiresAt: string;
}

export interface LoginRequest {
  readonly token: string;
}

/** `GET login`, with or without a session: how one gets in here. */
export interface LoginFacts {
  /** `token`: the form works. `link`: auth is off, only a one-time link opens the page. */
  readonly by: "token" | "link";
  readonly hint: string;
  /** Who is in already; nobody: null. */
  readonly session: SessionAnswer | null;
}

export interface SandboxNow {
  readonly id: string;
  /** What stands for it in the ledger: `ledger?sandbox=`. */
  readonly ledgerId: string;
  readonly state: string;
  readonly owner: string;
  readonly template: string;
  readonly flavor: string;
  readonly runtime: string;
  readonly createdAt: string;
  readonly lastUsedAt: string;
  readonly expiresAt: string;
  /** Of one core; absent where it is not measured. */
  readonly cpuPercent?: number;
  readonly memoryBytes?: number;
  /** The tool that runs in it. */
  readonly running: string | null;
  readonly takenOverBy?: string;
}

/** Which part of the way a call is in. */
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
  /** Calls that are on their way. */
  readonly running: number;
  /** Calls that wait for an operator. */
  readonly waiting: number;
  /** Sandboxes that stand ready, and that are alive in all. */
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

/** Nobody's calls, or one client's, are served. */
export interface Pause {
  /** `*`: everybody. */
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
  /** The ids of the calls that wait for an operator: as many as before may be others. */
  readonly approvals: readonly string[];
  readonly paused: readonly Pause[];
}

/** The event `change` of `GET live`: only what is other than before. A sandbox or a call that ended is in `gone`. */
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
  /** Where its files begin. */
  readonly workspace: string;
  /** Which of the views and actions this sandbox has. */
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
  /** More than 1 when refusals like this one were counted in one row. */
  readonly count: number;
}

/**
 * `GET ledger?client&tool&kind&decision&outcome&rule&trace&sandbox&from&to&text&before&after&limit`. Newest first.
 * `before`: rows older than this number. `after`: the oldest of those that are newer, still newest first.
 */
export interface LedgerPage {
  readonly rows: readonly LedgerLine[];
  /** How many the filter lets through; absent when they were not counted. */
  readonly total?: number;
  /** Whether there are older ones. */
  readonly more: boolean;
  /**
   * Where to go on: `before=` this. With `text` it may come with few rows, or none: no more was looked through in one
   * go, and there may be some further down.
   */
  readonly next?: number;
  /** The newest row that was looked at, found or not: those that come later are asked for with `after=` this. */
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
  /** Stages of the pipeline, where the server still remembers them. */
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
  /** Where it would work, if it says so. */
  readonly sandbox?: string;
  /** What a file would become, where that is known. */
  readonly change?: ProposedChange;
}

export interface ProposedChange {
  readonly path: string;
  /** Absent for a new file, and for one that could not be read. */
  readonly before?: string;
  /** Of one that is there, or may be. */
  readonly beforeMissing?: MissingText;
  readonly after: string;
  /** The texts are no whole file: `after` comes at its end, or in place of `before`. */
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

/** The part of the contract about what calls cost, and who is near a limit. */
export interface SpendCount {
  readonly calls: number;
  readonly refused: number;
  readonly failed: number;
  readonly costMicros: number;
}

/** `GET spend?range=week|month|quarter`, or `?from&to`; without any of them: of the last 35 days. */
export interface Spend {
  /** Where days and months begin. */
  readonly timeZone: string;
  readonly from: string;
  /** Days there, such as `2026-11-15`: the one of `from`, and the one of this moment. */
  readonly firstDay: string;
  readonly today: string;
  readonly total: SpendCount;
  readonly clients: readonly (SpendCount & { readonly client: string })[];
  readonly tools: readonly (SpendCount & { readonly tool: string })[];
  readonly days: readonly (SpendCount & { readonly day: string })[];
  /** What this month has cost, and what it will have cost at its end, if it goes on like this. */
  readonly month: { readonly usedMicros: number; readonly forecastMicros: number };
  /** Of this month, for clients that have one. */
  readonly budgets: readonly BudgetState[];
  readonly nearLimits: readonly NearLimit[];
}

export interface BudgetState {
  readonly client: string;
  readonly usedMicros: number;
  readonly limitMicros: number;
  /** At the end of the month, if it goes on as in this month so far. */
  readonly forecastMicros: number;
}

export interface NearLimit {
  readonly client: string;
  readonly limit: "per_minute" | "per_day" | "concurrency" | "budget";
  readonly used: number;
  readonly most: number;
}
