import type { CommandCall } from "./command-action.ts";
import { withLocalServer } from "./local-session.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";

export async function resourcesListCommand(call: CommandCall): Promise<number> {
  const { terminal, flags } = call;
  const resources = await withLocalServer(call, (server) => server.listResources());
  if (flags["json"] === true) {
    terminal.out(jsonText({ resources }));
    return 0;
  }
  if (resources.length === 0) {
    terminal.err("There are no resources yet. Name the files that define them with --handlers or handlers.paths.\n");
    return 0;
  }
  const rows = resources.map(({ uri, name, mimeType, description }) => [uri, name, mimeType ?? "", description ?? ""]);
  const { width, outColor: color } = terminal;
  terminal.out(renderTable({ columns: ["URI", "NAME", "TYPE", "DESCRIPTION"], rows, width, color }));
  return 0;
}
