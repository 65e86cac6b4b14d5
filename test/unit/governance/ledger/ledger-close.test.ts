import { join } from "node:path";
import { expect, test } from "vitest";
import { draftFromEntry } from "../../../../src/governance/ledger/ledger.ts";
import { loadLedgerKeys } from "../../../../src/governance/ledger/keys.ts";
import { SqliteStore } from "../../../../src/governance/ledger/sqlite/sqlite-store.ts";
import { createRedactor } from "../../../../src/telemetry/redact.ts";
import { entry } from "./ledger-entry.ts";
import { dataFolder } from "./ledger-fixture.ts";

/** Several pages of a verification. */
const ROWS = 9000;

function openStore(folder: string): SqliteStore {
  const keyFolder = join(folder, "keys");
  const keys = loadLedgerKeys({ folder: keyFolder, create: true });
  return new SqliteStore({ path: join(folder, "ledger.db"), keys, keyFolder, checkpointEvery: 1000 });
}

test("a store that is closed while it is verified ends at the next page, and says nothing about its rows", async () => {
  const folder = dataFolder();
  const store = openStore(folder);
  const redactor = createRedactor();
  await store.append(Array.from({ length: ROWS }, (_, index) => draftFromEntry(entry({ args: { index } }), redactor)));
  await store.head();
  const verified = store.verify({});
  const listed = store.list({}, { limit: 10 });
  await Promise.all([
    expect(verified).rejects.toMatchObject({ kind: "store_unavailable" }),
    expect(listed).resolves.toHaveLength(10),
    store.close(),
  ]);

  const again = openStore(folder);
  expect(await again.verify({})).toMatchObject({ isIntact: true });
  await again.close();
});

test("a closed store starts no thread again for whoever still asks", async () => {
  const store = openStore(dataFolder());
  await store.append([]);
  await Promise.all([store.close(), store.close()]);
  const closed = { kind: "store_unavailable", message: "the ledger is closed", retryable: false };
  await expect(store.head()).rejects.toMatchObject(closed);
  await expect(store.verify({})).rejects.toMatchObject(closed);
});
