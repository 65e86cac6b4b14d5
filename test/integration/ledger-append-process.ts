// Appends to the ledger of a data folder until it is killed, and says on stdout what was acknowledged.
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { openStoreAndLedger } from "../../src/governance/store/open-governance-store.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { entry } from "../unit/governance/ledger/ledger-entry.ts";

const [dataFolder = "", name = "", storeUrl = ""] = process.argv.slice(2);
const config = {
  ...DEFAULT_CONFIG,
  store: { url: storeUrl },
  ledger: { ...DEFAULT_CONFIG.ledger, checkpointEvery: 50 },
};
const { ledger } = await openStoreAndLedger({ config, dataFolder, logger: SILENT_LOGGER });
let next = 0;
const appendForEver = async (): Promise<never> => {
  for (;;) {
    const call = `${name}-${next++}`;
    const { seq } = await ledger.append(entry({ time: Date.now(), traceId: call }));
    process.stdout.write(`${seq} ${call}\n`);
  }
};
await Promise.all(Array.from({ length: 16 }, appendForEver));
