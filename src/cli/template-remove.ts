import { rm, stat } from "node:fs/promises";
import { loadConfig } from "../config/load.ts";
import { TEMPLATE_NAME, templateFolder } from "../config/template-name.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { UsageError } from "./usage-error.ts";

export async function templateRemoveCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const name = args[0] ?? "";
  const { config } = await loadConfig(toLoadOptions(flags));
  const folder = templateFolder(config.sandbox.root, name);
  const isThere = TEMPLATE_NAME.test(name) && (await stat(folder).catch(() => undefined)) !== undefined;
  if (!isThere) throw new UsageError(`no template "${name}" was built: owlclaw mcp-server template list shows them`);
  await rm(folder, { recursive: true, force: true });
  terminal.out(`Removed ${name}.\n`);
  return 0;
}
