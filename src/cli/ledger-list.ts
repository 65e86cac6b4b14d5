import { isoTime, toReadable } from "../governance/ledger/export.ts";
import type { LedgerRow } from "../governance/ledger/row.ts";
import type { CommandCall } from "./command-action.ts";
import { filterFromFlags, wholeNumber, withLedger } from "./ledger-reader.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";

const MAX_ROWS = 10_000;
const COLUMNS = ["SEQ", "TIME", "CLIENT", "TOOL", "OUTCOME", "MS", "COST", "RULE", "ARGUMENTS"];

export async function ledgerListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const filter = filterFromFlags(flags);
  const limit = wholeNumber("--limit", flags["limit"], MAX_ROWS);
  const rows = await withLedger(flags, (reader) => reader.list(filter, { limit }));
  if (flags["json"] === true) {
    terminal.out(jsonText({ rows: rows.map(toReadable) }));
    return 0;
  }
  if (rows.length === 0) {
    terminal.err("No call in the ledger fits.\n");
    return 0;
  }
  terminal.out(
    renderTable({ columns: COLUMNS, rows: rows.map(toCells), width: terminal.width, color: terminal.outColor }),
  );
  return 0;
}

function toCells(row: LedgerRow): string[] {
  return [
    String(row.seq),
    isoTime(row.time)
      .replace("T", " ")
      .replace(/\.\d+Z$/, ""),
    row.label === null ? row.principal : `${row.principal} (${row.label})`,
    row.count > 1 ? `${row.name} ×${row.count}` : row.name,
    row.error_kind === null ? row.outcome : `${row.outcome}: ${row.error_kind}`,
    (row.duration_us / 1000).toFixed(1),
    formatCost(row.cost_micros),
    row.rule,
    row.args,
  ];
}

/** Micro-units as units, without zeros that say nothing: 1500000 is 1.5. */
export function formatCost(micros: number): string {
  return String(micros / 1_000_000);
}
