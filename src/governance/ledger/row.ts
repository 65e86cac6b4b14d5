import type { LedgerKind } from "./ledger.ts";

/**
 * Besides the kinds of calls: `refusals` counts refusals that repeated an earlier one, `checkpoint` signs the chain up
 * to here, `cut` replaces rows that retention removed, `loss` records that signed rows are missing, and
 * `acknowledgement` that an operator has acknowledged it.
 */
export type RowKind = LedgerKind | "refusals" | "checkpoint" | "cut" | "loss" | "acknowledgement";

/** The columns in the order in which they are hashed; `hash` follows them. */
export const COLUMNS = [
  "seq",
  "time",
  "principal",
  "label",
  "transport",
  "kind",
  "name",
  "called_as",
  "args",
  "result",
  "outcome",
  "error_kind",
  "decision",
  "rule",
  "policy_revision",
  "duration_us",
  "cost_micros",
  "trace_id",
  "sandbox",
  "flags",
  "count",
] as const;

export type Column = (typeof COLUMNS)[number];
export type Value = string | number | null;

/** The values of a row in the order of `COLUMNS`, without `seq`, which is known only under the store's lock. */
export type Draft = readonly Value[];

/**
 * A row as it is stored. Texts in `args`, `result` and `flags` are JSON. Other programs may have changed the file, so
 * `kind` may be any text.
 */
export interface LedgerRow {
  readonly seq: number;
  readonly time: number;
  readonly principal: string;
  readonly label: string | null;
  readonly transport: string;
  readonly kind: string;
  readonly name: string;
  readonly called_as: string;
  readonly args: string;
  readonly result: string;
  readonly outcome: string;
  readonly error_kind: string | null;
  readonly decision: string;
  readonly rule: string;
  readonly policy_revision: string;
  readonly duration_us: number;
  readonly cost_micros: number;
  readonly trace_id: string;
  readonly sandbox: string | null;
  readonly flags: string;
  readonly count: number;
  readonly hash: string;
}

export type DraftFields = Omit<LedgerRow, "seq" | "hash">;

export function toDraft(row: DraftFields): Draft {
  return [
    row.time,
    row.principal,
    row.label,
    row.transport,
    row.kind,
    row.name,
    row.called_as,
    row.args,
    row.result,
    row.outcome,
    row.error_kind,
    row.decision,
    row.rule,
    row.policy_revision,
    row.duration_us,
    row.cost_micros,
    row.trace_id,
    row.sandbox,
    row.flags,
    row.count,
  ];
}

const SYSTEM_ROW: DraftFields = {
  time: 0,
  principal: "owlclaw",
  label: null,
  transport: "",
  kind: "checkpoint",
  name: "",
  called_as: "",
  args: "{}",
  result: "null",
  outcome: "ok",
  error_kind: null,
  decision: "allow",
  rule: "",
  policy_revision: "",
  duration_us: 0,
  cost_micros: 0,
  trace_id: "",
  sandbox: null,
  flags: "[]",
  count: 0,
};

/** A row that the ledger writes about itself. It does not count as a call. */
export function systemDraft(
  kind: "checkpoint" | "cut" | "loss" | "acknowledgement",
  time: number,
  statement: unknown,
): Draft {
  return toDraft({ ...SYSTEM_ROW, kind, name: kind, called_as: kind, time, result: JSON.stringify(statement) });
}

/** A row as a database returns it. Rows that were tampered with must still be shown, so no value is rejected here. */
export function toRow(stored: unknown): LedgerRow {
  const value = (name: Column | "hash"): unknown =>
    typeof stored === "object" && stored !== null ? Reflect.get(stored, name) : undefined;
  const number = (name: Column): number => Number(value(name) ?? 0);
  const text = (name: Column | "hash"): string => toText(value(name));
  const optional = (name: Column): string | null => (value(name) === null ? null : text(name));
  return {
    seq: number("seq"),
    time: number("time"),
    principal: text("principal"),
    label: optional("label"),
    transport: text("transport"),
    kind: text("kind"),
    name: text("name"),
    called_as: text("called_as"),
    args: text("args"),
    result: text("result"),
    outcome: text("outcome"),
    error_kind: optional("error_kind"),
    decision: text("decision"),
    rule: text("rule"),
    policy_revision: text("policy_revision"),
    duration_us: number("duration_us"),
    cost_micros: number("cost_micros"),
    trace_id: text("trace_id"),
    sandbox: optional("sandbox"),
    flags: text("flags"),
    count: number("count"),
    hash: text("hash"),
  };
}

/** The value of a text column as text, whatever its type. */
export function toText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : JSON.stringify(value);
}
