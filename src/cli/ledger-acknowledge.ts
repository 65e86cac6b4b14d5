import { loadConfig } from "../config/load.ts";
import { acknowledgementDraft, OpenLoss } from "../governance/ledger/loss.ts";
import { keyFolderOf, openStore } from "../governance/ledger/open-store.ts";
import type { CommandCall } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { wholeNumber } from "./ledger-reader.ts";
import { withoutTerminalControls } from "./text.ts";
import { UsageError } from "./usage-error.ts";

const MAX_NAME_CHARS = 200;

/** Appends the acknowledgement to the chain, beside running servers. */
export async function ledgerAcknowledgeCommand({ terminal, args, flags }: CommandCall): Promise<number> {
  const seq = wholeNumber("row", args[0], Number.MAX_SAFE_INTEGER);
  const by = withoutTerminalControls(String(flags["by"])).trim();
  if (by === "" || by.length > MAX_NAME_CHARS)
    throw new UsageError(`--by wants a name of 1 to ${MAX_NAME_CHARS} characters`);
  const { config } = await loadConfig(toLoadOptions(flags));
  const place = { config, dataFolder: config.sandbox.root };
  const { store } = await openStore(place);
  try {
    const row = await store.get(seq);
    if (row?.kind !== "loss")
      throw new UsageError(
        `row ${seq} does not record a loss; \`owlclaw mcp-server ledger verify\` names the row that does`,
      );
    await store.append([acknowledgementDraft({ upTo: seq, by })]);
  } finally {
    await store.close();
  }
  new OpenLoss(keyFolderOf(place)).clear(seq);
  terminal.err(`The loss in row ${seq} is acknowledged by ${by}.\n`);
  return 0;
}
