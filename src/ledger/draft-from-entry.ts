import type { Redactor } from "../telemetry/redact.ts";
import { type Bounds, toBoundedJson } from "./bounded-json.ts";
import type { LedgerEntry } from "./ledger.ts";
import { type Draft, toDraft } from "./row.ts";

const ARGS_BOUNDS: Bounds = { maxChars: 8000, maxTextChars: 4000 };
const RESULT_BOUNDS: Bounds = { maxChars: 8000, maxTextChars: 4000 };
const MAX_NAME_CHARS = 512;
const MAX_FLAGS = 20;
const NO_ARGS = "{}";

/** A row that stands for several calls. */
export interface CountedRow {
  readonly kind: "refusals";
  readonly count: number;
}

/** The entry as a row: bounded, redacted, and with nothing in it that a database would refuse, since one such row would fail its whole batch. */
export function draftFromEntry(entry: LedgerEntry, redactor: Redactor, counted?: CountedRow): Draft {
  const name = (text: string): string => plainText(redactor.text(text.slice(0, MAX_NAME_CHARS)));
  const optional = (text: string | undefined): string | null => (text === undefined ? null : name(text));
  const title = name(entry.name);
  return toDraft({
    time: integer(entry.time),
    principal: plainText(entry.principal.slice(0, MAX_NAME_CHARS)),
    label: optional(entry.label),
    transport: plainText(entry.transport.slice(0, MAX_NAME_CHARS)),
    kind: counted?.kind ?? entry.kind,
    name: title,
    called_as: entry.calledAs === entry.name ? title : name(entry.calledAs),
    args: entry.args === undefined ? NO_ARGS : toBoundedJson(entry.args, redactor, ARGS_BOUNDS),
    result: entry.result === undefined ? "null" : toBoundedJson(entry.result, redactor, RESULT_BOUNDS),
    outcome: entry.outcome,
    error_kind: optional(entry.errorKind),
    decision: entry.decision,
    rule: name(entry.rule),
    policy_revision: name(entry.policyRevision),
    duration_us: integer(entry.durationMs * 1000),
    cost_micros: integer(entry.costMicros),
    trace_id: name(entry.traceId),
    sandbox: optional(entry.sandbox),
    flags: entry.flags.length === 0 ? "[]" : JSON.stringify(entry.flags.slice(0, MAX_FLAGS).map(name)),
    count: integer(counted?.count ?? 1),
  });
}

function integer(value: number): number {
  return Number.isFinite(value)
    ? Math.min(Math.max(Math.round(value), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
    : 0;
}

/** Half a character would come back changed, and a zero ends a text in some databases. */
function plainText(text: string): string {
  return text.replace(/[\0\p{Surrogate}]/gu, "\ufffd");
}
