import { loadConfig } from "../config/load.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { HASH_CHARS, visible } from "./approval-text.ts";
import { renderTable } from "./table.ts";
import { jsonText, toLine } from "./text.ts";

export async function approvalsListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const { config } = await loadConfig(toLoadOptions(flags));
  const { listApprovals } = await import("../server/control-client.ts");
  const approvals = await listApprovals(config.sandbox.root);
  if (flags["json"] === true) {
    terminal.out(jsonText({ approvals }));
    return 0;
  }
  if (approvals.length === 0) {
    terminal.err("No call waits for an approval.\n");
    return 0;
  }
  const rows = approvals.map(({ id, principal, name, rule, expiresAtMs, hash, args }) => [
    id,
    principal,
    name,
    rule,
    new Date(expiresAtMs).toISOString(),
    hash.slice(0, HASH_CHARS),
    visible(JSON.stringify(args) ?? ""),
  ]);
  const columns = ["ID", "CLIENT", "TOOL", "RULE", "EXPIRES", "HASH", "ARGUMENTS"];
  const table = renderTable({ columns, rows, width: terminal.width, color: terminal.outColor });
  terminal.out(table);
  const lines = table.split("\n").slice(1);
  const cut = approvals.filter(
    ({ isCut }, row) => isCut || !(lines[row] ?? "").endsWith(toLine(rows[row]?.at(-1) ?? "", Infinity)),
  );
  if (cut.length > 0)
    terminal.err(
      `The arguments of ${cut.map(({ id }) => id).join(", ")} are cut: \`approvals approve ID\` shows the whole call and asks, --json prints it.\n`,
    );
  return 0;
}
