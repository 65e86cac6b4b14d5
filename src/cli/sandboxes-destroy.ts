import { loadConfig } from "../config/load.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { operatorName } from "./operator-name.ts";
import { UsageError } from "./usage-error.ts";

export async function sandboxesDestroyCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const [name = ""] = args;
  const { config } = await loadConfig(toLoadOptions(flags));
  const { destroySandbox } = await import("../server/control-client.ts");
  if (!(await destroySandbox(config.sandbox.root, { name, by: operatorName() }))) {
    throw new UsageError(
      `no running server has a sandbox named ${name}; \`owlclaw mcp-server sandboxes list\` shows them`,
    );
  }
  terminal.err(`${name} is gone. Files that could not be removed are tried again; /health counts such workspaces.\n`);
  return 0;
}
