import { join } from "node:path";
import { SqliteGovernanceStore } from "../../../../src/governance/store/sqlite/sqlite-governance-store.ts";
import { loadLedgerKeys } from "../../../../src/ledger/keys.ts";

/** The store of a place as a server opens it: with the machine's clocks, and with processes as the machine knows them. */
export function openStoreAt(place: string): Promise<SqliteGovernanceStore> {
  const keyFolder = join(place, "keys");
  return SqliteGovernanceStore.open({
    path: join(place, "ledger.db"),
    keys: loadLedgerKeys({ folder: keyFolder, create: true }),
    keyFolder,
    checkpointEvery: 50,
    timeZone: () => "UTC",
  });
}
