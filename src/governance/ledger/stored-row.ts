import type { Column, LedgerRow } from "./row.ts";

/** A row as a database handed it out. What was tampered with still has to be shown, so nothing is refused here. */
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

/** Whatever stands in a column of texts. */
export function toText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : JSON.stringify(value);
}
