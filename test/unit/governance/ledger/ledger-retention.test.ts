import { join } from "node:path";
import Database from "libsql";
import { expect, test } from "vitest";
import { draftFromEntry } from "../../../../src/governance/ledger/ledger.ts";
import { loadLedgerKeys } from "../../../../src/governance/ledger/keys.ts";
import { SqliteReader } from "../../../../src/governance/ledger/sqlite/reader.ts";
import { SqliteWriter } from "../../../../src/governance/ledger/sqlite/writer.ts";
import { createRedactor } from "../../../../src/telemetry/redact.ts";
import { entry } from "./ledger-entry.ts";
import { appendMany, dataFolder, openTestLedger } from "./ledger-fixture.ts";

const DAY_MS = 86_400_000;

/** Rows 1 to `count`, one a minute. */
function filled(count: number) {
  const folder = dataFolder();
  const path = join(folder, "ledger.db");
  const keys = loadLedgerKeys({ folder: join(folder, "keys"), create: true });
  const writer = new SqliteWriter({ path, keys, checkpointEvery: 1_000_000 });
  const redactor = createRedactor();
  writer.append(Array.from({ length: count }, (_, index) => draftFromEntry(entry({ time: index * 60_000 }), redactor)));
  const reader = new SqliteReader({ path, loadKeys: () => keys });
  return { path, writer, reader, minute: (seq: number) => (seq - 1) * 60_000 };
}

test("old rows are replaced by a signed record of their range, and the rest verifies", async () => {
  const { writer, reader, minute } = filled(100);
  const cut = writer.cut(minute(41));
  expect(cut).toMatchObject({ from: 1, to: 40 });
  expect(await reader.verify({})).toMatchObject({
    isIntact: true,
    rows: 61,
    firstSeq: 41,
    removed: { from: 1, to: 40 },
  });
  expect(writer.cut(minute(41))).toBeUndefined();
});

test("later cuts go on from earlier ones, and take their records along", async () => {
  const { writer, reader, minute } = filled(100);
  writer.cut(minute(41));
  writer.cut(minute(81));
  writer.append([draftFromEntry(entry({ time: Date.now() }), createRedactor())]);
  // The two records are rows 101 and 102; they are as young as today.
  expect(writer.cut(Date.now() - DAY_MS)).toMatchObject({ from: 1, to: 100 });
  expect(await reader.verify({})).toMatchObject({ isIntact: true, firstSeq: 101, removed: { from: 1, to: 100 } });
});

test("more rows than one cut takes go in several", async () => {
  const { writer, reader } = filled(12_000);
  const before = Date.now() - DAY_MS;
  const cuts = [writer.cut(before), writer.cut(before), writer.cut(before)];
  expect(cuts.map((cut) => cut?.to)).toEqual([5000, 10_000, 12_000]);
  expect(await reader.verify({})).toMatchObject({ isIntact: true, rows: 3 });
});

test("rows removed beside a cut are missing, and a forged record is none", async () => {
  const { path, writer, reader, minute } = filled(100);
  writer.cut(minute(41));
  const db = new Database(path);
  db.exec("DELETE FROM ledger WHERE seq <= 45");
  expect((await reader.verify({})).problems).toEqual([
    { seq: 1, fault: "missing", detail: "rows 1 to 45 are missing" },
  ]);
  db.exec(`UPDATE ledger SET result = replace(result, '"to":40', '"to":45') WHERE kind = 'cut'`);
  db.close();
  expect((await reader.verify({})).problems.map(({ seq, fault }) => [seq, fault])).toEqual([
    [1, "missing"],
    [101, "changed"],
  ]);
});

test("a published head inside the removed part is no reason to complain; one at its end is compared", async () => {
  const { writer, reader, minute } = filled(50);
  const row = await reader.get(20);
  const last = await reader.get(40);
  writer.cut(minute(41));
  expect(await reader.verify({ head: { seq: 20, hash: row?.hash ?? "" } })).toMatchObject({ isIntact: true });
  expect(await reader.verify({ head: { seq: 40, hash: last?.hash ?? "" } })).toMatchObject({ isIntact: true });
  expect(await reader.verify({ head: { seq: 40, hash: row?.hash ?? "" } })).toMatchObject({ isIntact: false });
});

test("retentionDays removes them while the server runs", async () => {
  const folder = dataFolder();
  const first = await openTestLedger(folder);
  await appendMany(first.ledger, 10, { time: Date.now() - 8 * DAY_MS });
  await appendMany(first.ledger, 5, { time: Date.now() - 6 * DAY_MS });
  await first.ledger.close();
  const { ledger, log } = await openTestLedger(folder, { retentionDays: 7 });
  await expect.poll(() => log.some(({ message }) => message === "old rows of the ledger were removed")).toBe(true);
  expect((await ledger.reader.list({}, { limit: 100 })).map(({ seq }) => seq)).toEqual([15, 14, 13, 12, 11]);
  expect((await ledger.reader.verify({})).isIntact).toBe(true);
});
