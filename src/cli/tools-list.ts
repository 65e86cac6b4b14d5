import type { CommandCall } from "./command-action.ts";
import { withLocalServer } from "./local-session.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";

export async function toolsListCommand(call: CommandCall): Promise<number> {
  const { terminal, flags } = call;
  if (flags["json"] === true) {
    const tools = await withLocalServer(call, (server) => server.wireTools());
    terminal.out(jsonText({ tools }));
    return 0;
  }
  const tools = await withLocalServer(call, (server) => server.listTools());
  if (tools.length === 0) {
    terminal.err("There are no tools yet. Name your handlers with --handlers or handlers.paths.\n");
    return 0;
  }
  const rows = tools.map(({ name, version, scope, description }) => [name, version, scope ?? "", description]);
  const { width, outColor: color } = terminal;
  terminal.out(renderTable({ columns: ["NAME", "VERSION", "SCOPE", "DESCRIPTION"], rows, width, color }));
  return 0;
}
