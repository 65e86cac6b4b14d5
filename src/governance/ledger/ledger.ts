import { type Draft, toDraft } from "./row.ts";
import type { Recorded } from "./settlement-queue.ts";
import type { CallId, LedgerReader, Settlement } from "./store.ts";
import { type Redactor, hiding, withoutTexts } from "../../telemetry/redact.ts";
import { type Bounds, toBoundedJson } from "./bounded-json.ts";

/** What was called. `task`: a word to a task that runs. `admin`: an operator's own act, such as an approval. */
export type LedgerKind = "tool" | "resource" | "prompt" | "completion" | "list" | "task" | "admin";

/** `unknown`: the server ended before the call did. */
export type LedgerOutcome = "ok" | "refused" | "failed" | "cancelled" | "timeout" | "suspended" | "unknown";

export type LedgerDecision = "allow" | "deny";

/** What the pipeline knows of one finished or refused call. Arguments and result are redacted and bounded on their way in. */
export interface LedgerEntry {
  /** When the call came in, in milliseconds since the epoch. */
  readonly time: number;
  readonly principal: string;
  /** What the client calls itself; no proof of anything. */
  readonly label: string | undefined;
  readonly transport: string;
  readonly kind: LedgerKind;
  /** The operation's native name, or the URI. */
  readonly name: string;
  /** The name the caller used. */
  readonly calledAs: string;
  readonly args: unknown;
  readonly result: unknown;
  readonly outcome: LedgerOutcome;
  readonly errorKind: string | undefined;
  readonly decision: LedgerDecision;
  /** Id of the rule that decided. */
  readonly rule: string;
  readonly policyRevision: string;
  readonly durationMs: number;
  readonly costMicros: number;
  readonly traceId: string;
  readonly sandbox: string | undefined;
  readonly flags: readonly string[];
  /** How many calls it stands for: none, where a call has a row already. Default 1. */
  readonly count?: number;
  /** Texts that are taken out wherever they stand: ids that open something. */
  readonly secrets?: readonly string[] | undefined;
}

/** A point of the chain that can be published and held against the ledger later. */
export interface LedgerHead {
  readonly seq: number;
  /** Hexadecimal. */
  readonly hash: string;
}

/** In the second row of a call, when its first one was written before its work was over. */
export const RAN_ON_FLAG = "ran_on";

/** The row of a call that has begun, in case its process dies before the call ends. */
export interface Beginning {
  readonly draft: Draft;
  /** As in the draft, for the row. */
  readonly argsText: string;
  /** What was taken out of the arguments. */
  readonly secrets: readonly string[] | undefined;
}

/** The end of an admitted call, or of the part of it that has a row. */
export interface CallEnd {
  readonly call: CallId;
  readonly costMicros: number;
  readonly beginning?: Beginning | undefined;
  /** The work of the call goes on: it keeps what it holds, and this is its row if the process dies. */
  readonly goesOnAs?: LedgerEntry;
}

/** The record of every call. */
export interface Ledger {
  /** Of the entry of a call that begins, bounded and redacted. */
  beginning(entry: LedgerEntry): Beginning;
  /**
   * Resolves when the entry is on disk, and with `end` what the call held is released and its cost booked: one transaction.
   * Rejects with `store_unavailable` when it cannot be made durable; the end of a call is written when that works again,
   * or by the next start. A refusal that repeats an earlier one resolves with the row that counts it.
   */
  append(entry: LedgerEntry, end?: CallEnd): Promise<Recorded>;
  /** The same without a row, for what a call holds that has not run. */
  settle(settlement: Settlement): Promise<Recorded>;
  /** Settles the calls of processes that died. Says how many have ended; 0 where the store does not answer. */
  recover(): Promise<number>;
  /** Whether the last attempt to write worked; for health checks. */
  readonly isHealthy: boolean;
  /** Rows were lost, and no operator has acknowledged it. */
  readonly hasOpenLoss: boolean;
  /** Lists, statistics, verification. They run beside the writes and hold up neither them nor the server's loop. */
  readonly reader: LedgerReader;
  /** Writes what is pending, closes counted refusals, signs the head. May be called twice. */
  close(): Promise<void>;
}

/** Of arguments and of results. */
const BOUNDS: Bounds = { maxChars: 8000, maxTextChars: 4000 };
const MAX_NAME_CHARS = 512;
const MAX_FLAGS = 20;
const NO_ARGS = "{}";

/** A row that stands for several calls. */
export interface CountedRow {
  readonly kind: "refusals";
  readonly count: number;
}

/** The entry as a row: bounded, redacted, and with nothing in it that a database would refuse, since one such row would fail its whole batch. */
export function draftFromEntry(
  entry: LedgerEntry,
  redactor: Redactor,
  { counted, argsText }: { readonly counted?: CountedRow; readonly argsText?: string | undefined } = {},
): Draft {
  const contents = hiding(redactor, entry.secrets);
  const json = (value: unknown, nothing: string): string =>
    value === undefined ? nothing : toBoundedJson(value, contents, BOUNDS);
  const name = (text: string): string => withoutTexts(cleanName(text, redactor), entry.secrets);
  const optional = (text: string | undefined): string | null => (text === undefined ? null : cleanName(text, redactor));
  const title = name(entry.name);
  return toDraft({
    time: integer(entry.time),
    principal: plainText(entry.principal.slice(0, MAX_NAME_CHARS)),
    label: optional(entry.label),
    transport: plainText(entry.transport.slice(0, MAX_NAME_CHARS)),
    kind: counted?.kind ?? entry.kind,
    name: title,
    called_as: entry.calledAs === entry.name ? title : name(entry.calledAs),
    args: argsText ?? json(entry.args, NO_ARGS),
    result: json(entry.result, "null"),
    outcome: entry.outcome,
    error_kind: optional(entry.errorKind),
    decision: entry.decision,
    rule: name(entry.rule),
    policy_revision: name(entry.policyRevision),
    duration_us: integer(entry.durationMs * 1000),
    cost_micros: integer(entry.costMicros),
    trace_id: TRACE_ID.test(entry.traceId) ? entry.traceId : name(entry.traceId),
    sandbox: optional(entry.sandbox),
    flags: entry.flags.length === 0 ? "[]" : JSON.stringify(entry.flags.slice(0, MAX_FLAGS).map(name)),
    count: integer(counted?.count ?? entry.count ?? 1),
  });
}

const TRACE_ID = /^[0-9a-f]{32}$/;
const MAX_REMEMBERED_NAMES = 1000;
const remembered = new WeakMap<Redactor, Map<string, string>>();

/** Names of tools, rules and clients come again and again. */
function cleanName(text: string, redactor: Redactor): string {
  const names = namesOf(redactor);
  const known = names.get(text);
  if (known !== undefined) return known;
  const clean = plainText(redactor.text(text.slice(0, MAX_NAME_CHARS)));
  if (names.size >= MAX_REMEMBERED_NAMES) names.clear();
  if (text.length <= MAX_NAME_CHARS) names.set(text, clean);
  return clean;
}

function namesOf(redactor: Redactor): Map<string, string> {
  let names = remembered.get(redactor);
  if (names === undefined) remembered.set(redactor, (names = new Map<string, string>()));
  return names;
}

function integer(value: number): number {
  return Number.isFinite(value)
    ? Math.min(Math.max(Math.round(value), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
    : 0;
}

const UNFIT = /[\0\ud800-\udfff]/;

/** Half a character would come back changed, and a zero ends a text in some databases. */
function plainText(text: string): string {
  if (!UNFIT.test(text)) return text;
  return text.replace(/[\0\p{Surrogate}]/gu, "\ufffd");
}
