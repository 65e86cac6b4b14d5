import type { LedgerCount } from "../governance/ledger/query.ts";
import type { CommandCall } from "./command-action.ts";
import { formatCost } from "./ledger-list.ts";
import { filterFromFlags, withLedger } from "./ledger-reader.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";

/** More lines than this nobody reads; --json has them all. */
const SHOWN = 20;

export async function ledgerStatsCommand({ terminal, flags }: CommandCall): Promise<number> {
  const filter = filterFromFlags(flags);
  const stats = await withLedger(flags, (reader) => reader.stats(filter));
  if (flags["json"] === true) {
    terminal.out(jsonText(stats));
    return 0;
  }
  const table = (title: string, groups: readonly (readonly [string, LedgerCount])[]): string => {
    const columns = [title, "CALLS", "REFUSED", "FAILED", "COST", "SECONDS"];
    const rows = groups.slice(0, SHOWN).map(([key, count]) => [key, ...toCells(count)]);
    const more = groups.length > SHOWN ? `… and ${groups.length - SHOWN} more\n` : "";
    return renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }) + more;
  };
  const { total, clients, tools, days } = stats;
  terminal.out(
    [
      table("CLIENT", [["all", total], ...clients.map((count) => [count.client, count] as const)]),
      table(
        "TOOL",
        tools.map((count) => [count.tool, count] as const),
      ),
      table(
        "DAY",
        days.map((count) => [count.day, count] as const),
      ),
    ].join("\n"),
  );
  return 0;
}

function toCells({ calls, refused, failed, costMicros, durationMs }: LedgerCount): string[] {
  return [calls, refused, failed, formatCost(costMicros), (durationMs / 1000).toFixed(1)].map(String);
}
