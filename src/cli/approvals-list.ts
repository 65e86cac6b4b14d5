import { loadConfig } from "../config/load.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";

export async function approvalsListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const { config } = await loadConfig(toLoadOptions(flags));
  const { listApprovals } = await import("../server/control-client.ts");
  const approvals = await listApprovals(config.sandbox.root);
  if (flags["json"] === true) {
    terminal.out(`${JSON.stringify({ approvals }, null, 2)}\n`);
    return 0;
  }
  if (approvals.length === 0) {
    terminal.err("No call waits for an approval.\n");
    return 0;
  }
  const rows = approvals.map(({ id, principal, name, rule, expiresAtMs, args }) => [
    id,
    principal,
    name,
    rule,
    new Date(expiresAtMs).toISOString(),
    JSON.stringify(args),
  ]);
  const columns = ["ID", "CLIENT", "TOOL", "RULE", "EXPIRES", "ARGUMENTS"];
  terminal.out(renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }));
  return 0;
}
