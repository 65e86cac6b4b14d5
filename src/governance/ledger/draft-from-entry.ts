import { type Redactor, hiding, withoutTexts } from "../../telemetry/redact.ts";
import { type Bounds, toBoundedJson } from "./bounded-json.ts";
import type { LedgerEntry } from "./ledger.ts";
import { type Draft, toDraft } from "./row.ts";

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
