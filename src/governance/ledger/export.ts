import { withoutControls } from "../../telemetry/plain-fields.ts";
import type { LedgerFilter } from "./query.ts";
import { COLUMNS, type LedgerRow } from "./row.ts";
import type { LedgerReader } from "./store.ts";

export type ExportFormat = "jsonl" | "csv";

export interface ExportOptions {
  readonly format: ExportFormat;
  readonly filter: LedgerFilter;
}

const PAGE_ROWS = 500;
const EXPORT_COLUMNS = [...COLUMNS, "hash"] as const;

/** The rows as text, oldest first, a page at a time: memory use does not depend on the length of the ledger. */
export async function* exportRows(
  reader: Pick<LedgerReader, "list">,
  { format, filter }: ExportOptions,
): AsyncGenerator<string> {
  if (format === "csv") yield `${EXPORT_COLUMNS.join(",")}\r\n`;
  const toText = format === "csv" ? toCsvLine : toJsonLine;
  for (let after = 0; ;) {
    const rows = await reader.list(filter, { limit: PAGE_ROWS, order: "oldest", after });
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map(toText).join("");
    after = last.seq;
  }
}

/** A row for people: times as text, and the JSON columns parsed. */
export function toReadable(row: LedgerRow): Record<string, unknown> {
  return {
    ...row,
    time: isoTime(row.time),
    args: parsed(row.args),
    result: parsed(row.result),
    flags: parsed(row.flags),
  };
}

/** Rows that were tampered with may hold any number. */
export function isoTime(timeMs: number): string {
  return Math.abs(timeMs) <= 8.64e15 ? new Date(timeMs).toISOString() : String(timeMs);
}

function toJsonLine(row: LedgerRow): string {
  // Escapes control characters, which a terminal would interpret. The value of the JSON stays the same.
  return `${withoutControls(JSON.stringify(toReadable(row)))}\n`;
}

function toCsvLine(row: LedgerRow): string {
  const cells = EXPORT_COLUMNS.map((column) => (column === "time" ? isoTime(row.time) : toCell(row[column])));
  return `${cells.join(",")}\r\n`;
}

function toCell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  // A spreadsheet would run a cell that begins like a formula. Control characters, which a terminal would interpret,
  // are escaped as in JSON.
  const shown = value.replaceAll(/[^\t\n]+/g, withoutControls);
  const harmless = /^[=+\-@\t\r\n]/.test(shown) ? `'${shown}` : shown;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Only after tampering: shown as it is.
    return text;
  }
}
