import { toReadable } from "../governance/ledger/export.ts";
import type { CommandCall } from "./command-action.ts";
import { EXIT } from "./exit-code.ts";
import { wholeNumber, withLedger } from "./ledger-reader.ts";
import { jsonText, paint, withoutTerminalControls } from "./text.ts";

export async function ledgerShowCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const seq = wholeNumber("row", args[0], Number.MAX_SAFE_INTEGER);
  const row = await withLedger(flags, (reader) => reader.get(seq));
  if (row === undefined) {
    terminal.err(`There is no row ${seq}. Retention may have removed it: owlclaw mcp-server ledger verify\n`);
    return EXIT.failure;
  }
  const readable = toReadable(row);
  if (flags["json"] === true) {
    terminal.out(jsonText(readable));
    return 0;
  }
  const width = Math.max(...Object.keys(readable).map((name) => name.length));
  for (const [name, value] of Object.entries(readable)) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const indented = withoutTerminalControls(text).replaceAll("\n", `\n${" ".repeat(width + 2)}`);
    terminal.out(`${paint(name.padEnd(width), "bold", terminal.outColor)}  ${indented}\n`);
  }
  return 0;
}
