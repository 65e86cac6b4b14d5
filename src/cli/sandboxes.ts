import { loadConfig } from "../config/load.ts";
import { type CommandCall, UsageError, operatorName } from "./command.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";

export async function sandboxesListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const { config } = await loadConfig(toLoadOptions(flags));
  const { listSandboxes } = await import("../operator/control-client.ts");
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

export async function sandboxesDestroyCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const [name = ""] = args;
  const { config } = await loadConfig(toLoadOptions(flags));
  const { destroySandbox } = await import("../operator/control-client.ts");
  if (!(await destroySandbox(config.sandbox.root, { name, by: operatorName() }))) {
    throw new UsageError(
      `no running server has a sandbox named ${name}; \`owlclaw mcp-server sandboxes list\` shows them`,
    );
  }
  terminal.err(`${name} is gone. Files that could not be removed are tried again; /health counts such workspaces.\n`);
  return 0;
}
