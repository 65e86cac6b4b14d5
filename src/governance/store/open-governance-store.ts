import { existsSync } from "node:fs";
import { join } from "node:path";
import { type LedgerKeys, loadLedgerKeys } from "../ledger/keys.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { openLedger, type OpenLedgerOptions } from "../ledger/open-ledger.ts";
import { keyFolderOf, sqlitePath } from "../ledger/open-store.ts";
import type { GovernanceStore } from "./governance-store.ts";
import { SqliteGovernanceStore } from "./sqlite/sqlite-governance-store.ts";

export interface StoreAndLedgerOptions extends Omit<OpenLedgerOptions, "opened"> {
  /** The time zone of days and months; read in every transaction. Default: UTC. */
  readonly timeZone?: () => string;
  /** A server that shares the database and is silent for longer is treated as dead. */
  readonly leaseSeconds?: number;
}

export interface StoreAndLedger {
  readonly store: GovernanceStore;
  /** Closing it also closes the store. */
  readonly ledger: Ledger;
}

const LEASE_SECONDS = 15;
const toUtc = (): string => "UTC";

/** Opens the store that the configuration names, and the ledger in it; rejects when it cannot be written. */
export async function openStoreAndLedger(options: StoreAndLedgerOptions): Promise<StoreAndLedger> {
  const opened = await openGovernanceStore(options);
  try {
    await opened.store.append([]);
    return { store: opened.store, ledger: await openLedger({ ...options, opened }) };
  } catch (error) {
    await opened.store.close();
    throw error;
  }
}

async function openGovernanceStore(
  options: StoreAndLedgerOptions,
): Promise<{ readonly store: GovernanceStore; readonly keys: LedgerKeys }> {
  const { config, dataFolder, leaseSeconds = LEASE_SECONDS, timeZone = toUtc } = options;
  const { checkpointEvery } = config.ledger;
  const { url } = config.store;
  const keyFolder = keyFolderOf(options);
  const path = sqlitePath(dataFolder);
  // New keys would not match the rows that a ledger already has.
  const keys = loadLedgerKeys({ folder: keyFolder, create: url !== "" || !existsSync(path) });
  const shared = { keys, checkpointEvery, timeZone };
  if (url === "") {
    const oldLimits = join(dataFolder, "limits.db");
    return { keys, store: await SqliteGovernanceStore.open({ ...shared, path, keyFolder, oldLimits }) };
  }
  const { PostgresGovernanceStore } = await import("./postgres/postgres-governance-store.ts");
  return { keys, store: await PostgresGovernanceStore.open({ ...shared, url, leaseMs: leaseSeconds * 1000 }) };
}
