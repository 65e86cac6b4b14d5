import { openStore } from "../../src/ledger/open-store.ts";
import { recoverCalls } from "../../src/ledger/recover-calls.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";

/** A server of another container on the data folder that the argument names: prints how many calls it recovered. */
const [, , dataFolder = ""] = process.argv;
const { store, keys } = await openStore({ config: DEFAULT_CONFIG, dataFolder });
const charge = async (): Promise<void> => undefined;
const options = { dataFolder, keys, store, logger: SILENT_LOGGER, own: "", charge, owed: [] };
process.stdout.write(`${await recoverCalls(options)}\n`);
await store.close();
