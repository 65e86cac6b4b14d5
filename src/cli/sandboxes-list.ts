import { loadConfig } from "../config/load.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";

export async function sandboxesListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const { config } = await loadConfig(toLoadOptions(flags));
  const { listSandboxes } = await import("../server/control-client.ts");
  const sandboxes = await listSandboxes(config.sandbox.root);
  if (flags["json"] === true) {
    terminal.out(jsonText({ sandboxes }));
    return 0;
  }
  if (sandboxes.length === 0) {
    terminal.err("No running server with this data folder has a sandbox.\n");
    return 0;
  }
  const rows = sandboxes.map(({ name, owner, state, template, flavor, created_at: created, ends_at: ends }) => [
    name,
    owner,
    state,
    template,
    flavor,
    created,
    ends,
  ]);
  const columns = ["NAME", "OWNER", "STATE", "TEMPLATE", "FLAVOR", "CREATED", "ENDS"];
  terminal.out(renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }));
  return 0;
}
