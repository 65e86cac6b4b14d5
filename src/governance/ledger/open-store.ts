import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config/schema.ts";
import { type LedgerKeys, loadLedgerKeys } from "./keys.ts";
import { SqliteReader } from "./sqlite/reader.ts";
import { SqliteStore } from "./sqlite/sqlite-store.ts";
import type { LedgerReader, LedgerStore } from "./store.ts";

export interface LedgerLocation {
  readonly config: Pick<Config, "store" | "ledger">;
  readonly dataFolder: string;
}

export interface OpenStore {
  readonly store: LedgerStore;
  readonly keys: LedgerKeys;
}

export function keyFolderOf({ config, dataFolder }: LedgerLocation): string {
  return config.ledger.keyFolder === "" ? join(dataFolder, "keys") : config.ledger.keyFolder;
}

/** Opens the store that the configuration names; rejects when it cannot be written. */
export async function openStore(place: LedgerLocation): Promise<OpenStore> {
  const { config, dataFolder } = place;
  const { checkpointEvery } = config.ledger;
  const keyFolder = keyFolderOf(place);
  const path = sqlitePath(dataFolder);
  const isShared = config.store.url !== "";
  // New keys would not match the rows that a ledger already has.
  const keys = loadLedgerKeys({ folder: keyFolder, create: isShared || !existsSync(path) });
  const store = isShared
    ? await (
        await import("./postgres/postgres-store.ts")
      ).openPostgresStore({ url: config.store.url, keys, checkpointEvery })
    : new SqliteStore({ path, keys, keyFolder, checkpointEvery });
  try {
    await store.append([]);
    return { store, keys };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** For commands: reads a ledger, creates and changes nothing, and needs the keys only to verify. */
export async function openReader(place: LedgerLocation): Promise<LedgerReader> {
  const { config, dataFolder } = place;
  const loadKeys = (): LedgerKeys => loadLedgerKeys({ folder: keyFolderOf(place), create: false });
  if (config.store.url === "") return new SqliteReader({ path: sqlitePath(dataFolder), loadKeys });
  return (await import("./postgres/postgres-store.ts")).openPostgresReader({ url: config.store.url, loadKeys });
}

export function sqlitePath(dataFolder: string): string {
  return join(dataFolder, "ledger.db");
}
