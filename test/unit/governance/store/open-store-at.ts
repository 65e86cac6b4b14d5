import { join } from "node:path";
import type { GovernanceStore } from "../../../../src/governance/store/governance-store.ts";
import { PostgresGovernanceStore } from "../../../../src/governance/store/postgres/postgres-governance-store.ts";
import { SqliteGovernanceStore } from "../../../../src/governance/store/sqlite/sqlite-governance-store.ts";
import { loadLedgerKeys } from "../../../../src/governance/ledger/keys.ts";

/** What a server finds out by a lease and not by looking at processes. */
const LEASE_MS = 2000;

/** The store of a place as a server opens it: with the machine's clocks, and with processes as the machine knows them. */
export async function openStoreAt(place: string): Promise<GovernanceStore> {
  if (place.startsWith("postgres:")) {
    const keys = loadLedgerKeys({ folder: process.env["OWLCLAW_TEST_KEYS"] ?? "", create: true });
    const leaseMs = LEASE_MS;
    return PostgresGovernanceStore.open({ url: place, keys, checkpointEvery: 50, timeZone: () => "UTC", leaseMs });
  }
  const keyFolder = join(place, "keys");
  return SqliteGovernanceStore.open({
    path: join(place, "ledger.db"),
    keys: loadLedgerKeys({ folder: keyFolder, create: true }),
    keyFolder,
    checkpointEvery: 50,
    timeZone: () => "UTC",
  });
}
