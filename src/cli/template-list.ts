import { loadConfig } from "../config/load.ts";
import type { Template } from "../sandbox/templates.ts";
import type { CommandCall } from "./command-action.ts";
import { quietLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";

const MIB = 1024 ** 2;

export async function templateListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const loaded = await loadConfig(toLoadOptions(flags));
  const { readTemplates } = await import("../sandbox/read-templates.ts");
  const known = await readTemplates(loaded.config.sandbox, quietLogger(loaded, terminal));
  const templates = known.names.map((name) => known.get(name));
  if (flags["json"] === true) {
    terminal.out(jsonText({ templates: templates.map(toJson) }));
    return 0;
  }
  const rows = templates.map(({ name, language, built }) => [
    name === loaded.config.sandbox.template ? `${name} (default)` : name,
    language,
    built === undefined ? "the system's own" : built.packages.join(", "),
    built === undefined ? "" : `${(built.sizeBytes / MIB).toFixed(1)} MiB`,
    built?.builtAt.slice(0, 16).replace("T", " ") ?? "",
  ]);
  const columns = ["NAME", "LANGUAGE", "PACKAGES", "SIZE", "BUILT"];
  terminal.out(renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }));
  return 0;
}

function toJson({ name, language, built }: Template): Record<string, unknown> {
  return { name, language, ...built };
}
