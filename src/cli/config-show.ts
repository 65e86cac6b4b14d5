import { effectiveValues } from "../config/describe.ts";
import { loadConfig } from "../config/load.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";
import { untrustedNote } from "./untrusted-note.ts";
import { jsonText } from "./text.ts";

export async function configShowCommand({ terminal, flags }: CommandCall): Promise<number> {
  const loaded = await loadConfig({ ...toLoadOptions(flags), acceptsUntrusted: true });
  if (!loaded.isTrusted) terminal.err(untrustedNote(loaded));
  const values = effectiveValues(loaded);
  if (flags["json"] === true) {
    const rows = values.map(({ path, value, layer, source }) => ({ path, value, layer, source }));
    terminal.out(jsonText({ file: loaded.file ?? null, values: rows }));
    return 0;
  }
  const { width, outColor: color } = terminal;
  const rows = values.map(({ path, text, source }) => [path, source, text]);
  terminal.out(renderTable({ columns: ["KEY", "FROM", "VALUE"], rows, width, color }));
  return 0;
}
