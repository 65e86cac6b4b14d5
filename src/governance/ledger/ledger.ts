import { type Draft, toDraft } from "./row.ts";
import type { Recorded } from "./settlement-queue.ts";
import type { CallId, LedgerReader, Settlement } from "./store.ts";
import { type Redactor, hiding, withoutTexts } from "../../telemetry/redact.ts";
import { type Bounds, toBoundedJson } from "./bounded-json.ts";

/** What was called. `task`: a message to a running task. `admin`: an action of an operator, such as an approval. */
export type LedgerKind = "tool" | "resource" | "prompt" | "completion" | "list" | "task" | "admin";

/** `unknown`: the server ended before the call did. */
export type LedgerOutcome = "ok" | "refused" | "failed" | "cancelled" | "timeout" | "suspended" | "unknown";

export type LedgerDecision = "allow" | "deny";

/**
 * What the pipeline knows of one finished or refused call. Arguments and result are redacted and bounded when they are
 * written.
 */
export interface LedgerEntry {
  /** When the call arrived, in milliseconds since the epoch. */
  readonly time: number;
  readonly principal: string;
  /** The name that the client gives itself; it does not prove an identity. */
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
  /** How many calls the row counts as: 0 when the call has a row already. Default 1. */
  readonly count?: number;
  /** Texts that are removed wherever they occur: ids that give access. */
  readonly secrets?: readonly string[] | undefined;
}

/** A point of the chain that can be published and compared with the ledger later. */
export interface LedgerHead {
  readonly seq: number;
  /** Hexadecimal. */
  readonly hash: string;
}

/** Marks the second row of a call whose first row was written before its work had ended. */
export const RAN_ON_FLAG = "ran_on";

/** The row of a call that has begun, in case its process dies before the call ends. */
export interface Beginning {
  readonly draft: Draft;
  /** The arguments as in the draft, reused for the final row. */
  readonly argsText: string;
  /** Texts that were removed from the arguments. */
  readonly secrets: readonly string[] | undefined;
}

/** The end of an admitted call, or of the part of it that has a row. */
export interface CallEnd {
  readonly call: CallId;
  readonly costMicros: number;
  readonly beginning?: Beginning | undefined;
  /** Set when the work of the call continues: the call keeps what it holds, and gets this row if the process dies. */
  readonly goesOnAs?: LedgerEntry;
}

/** The record of every call. */
export interface Ledger {
  /** The row of a call that begins, bounded and redacted. */
  beginning(entry: LedgerEntry): Beginning;
  /**
   * Resolves when the entry is on disk. With `end`, the same transaction releases what the call held and books its
   * cost. Rejects with `store_unavailable` when the entry cannot be made durable; the end of a call is then written
   * when the store works again, or by the next start. A refusal that repeats an earlier one is counted, and resolves
   * with the row of the first.
   */
  append(entry: LedgerEntry, end?: CallEnd): Promise<Recorded>;
  /** The same without a row, to release what a call holds that has not run. */
  settle(settlement: Settlement): Promise<Recorded>;
  /** Settles the calls of processes that died. Returns how many; 0 when the store does not answer. */
  recover(): Promise<number>;
  /** Whether the last attempt to write worked; for health checks. */
  readonly isHealthy: boolean;
  /** Rows were lost, and no operator has acknowledged it. */
  readonly hasOpenLoss: boolean;
  /** Lists, statistics, verification. They run in parallel with writes, and block neither these nor the event loop. */
  readonly reader: LedgerReader;
  /** Writes what is pending, closes counted refusals, signs the head. May be called twice. */
  close(): Promise<void>;
}

/** The bounds of arguments and of results. */
const BOUNDS: Bounds = { maxChars: 8000, maxTextChars: 4000 };
const MAX_NAME_CHARS = 512;
const MAX_FLAGS = 20;
const NO_ARGS = "{}";

/** A row that counts several calls. */
export interface CountedRow {
  readonly kind: "refusals";
  readonly count: number;
}

/**
 * The entry as a row: bounded, redacted, and without characters that a database rejects, since one such row would fail
 * its whole batch.
 */
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

/** Cached, since the names of tools, rules and clients repeat. */
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

/** A lone surrogate would be read back changed, and a NUL ends a text in some databases. */
function plainText(text: string): string {
  if (!UNFIT.test(text)) return text;
  return text.replace(/[\0\p{Surrogate}]/gu, "\ufffd");
}
