import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { exportRows } from "../governance/ledger/export.ts";
import type { CommandCall } from "./command-action.ts";
import { filterFromFlags, withLedger } from "./ledger-reader.ts";

export async function ledgerExportCommand({ terminal, flags }: CommandCall): Promise<number> {
  const filter = filterFromFlags(flags);
  const format = flags["format"] === "csv" ? "csv" : "jsonl";
  const { output } = flags;
  await withLedger(flags, async (reader) => {
    const pages = exportRows(reader, { format, filter });
    if (typeof output === "string") {
      // Arguments and results are in it: for nobody else to read.
      await pipeline(Readable.from(pages), createWriteStream(output, { mode: 0o600 }));
      return;
    }
    for await (const page of pages) {
      terminal.out(page);
      await flushed();
    }
  });
  return 0;
}

/** A reader that is slower than the disk must not fill the memory. */
function flushed(): Promise<void> {
  return new Promise((resolve) => process.stdout.write("", () => resolve()));
}
