import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import Database from "libsql";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEFAULT_CONFIG } from "../../../../src/config/schema.ts";
import { formatHead, parseHead } from "../../../../src/governance/ledger/checkpoint.ts";
import { encodeRow, linkHash } from "../../../../src/governance/ledger/chain.ts";
import { type LedgerHead, draftFromEntry } from "../../../../src/governance/ledger/ledger.ts";
import { type LedgerKeys, loadLedgerKeys } from "../../../../src/governance/ledger/keys.ts";
import { COLUMNS } from "../../../../src/governance/ledger/row.ts";
import { SqliteReader } from "../../../../src/governance/ledger/sqlite/reader.ts";
import { SqliteWriter } from "../../../../src/governance/ledger/sqlite/writer.ts";
import type { VerifyOptions, VerifyReport } from "../../../../src/governance/ledger/verify.ts";
import { createRedactor } from "../../../../src/telemetry/redact.ts";
import { entry } from "./ledger-entry.ts";
import { dataFolder } from "./ledger-fixture.ts";

const ROWS = 60;
let original: string;
let keys: LedgerKeys;
let head: LedgerHead;

beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-ledger-"));
  keys = loadLedgerKeys({ folder: join(folder, "keys"), create: true });
  original = join(folder, "ledger.db");
  const writer = new SqliteWriter({ path: original, keys, checkpointEvery: 10 });
  const redactor = createRedactor();
  const drafts = Array.from({ length: ROWS - 6 }, (_, index) =>
    draftFromEntry(
      entry({ label: "desk", errorKind: "timeout", flags: ["x"], args: { index, text: "é".repeat(50) } }),
      redactor,
    ),
  );
  ({ head } = writer.append(drafts));
  writer.close();
});

afterAll(() => rmSync(dirname(original), { recursive: true }));

interface Tampered {
  readonly report: VerifyReport;
}

async function verify(path: string, options: VerifyOptions = {}, by: LedgerKeys = keys): Promise<VerifyReport> {
  const reader = new SqliteReader({ path, loadKeys: () => by });
  try {
    return await reader.verify(options);
  } finally {
    await reader.close();
  }
}

/** The number of the row as it is listed, and by itself. */
async function show(path: string, seq: number): Promise<number | undefined> {
  const reader = new SqliteReader({ path, loadKeys: () => keys });
  try {
    const listed = (await reader.list({}, { limit: ROWS * 2 })).find((row) => row.seq === seq);
    return (await reader.get(seq))?.seq === listed?.seq ? listed?.seq : undefined;
  } finally {
    await reader.close();
  }
}

/** A copy of the ledger after somebody with the right to write the file has been at it. */
async function tamper(
  act: (db: InstanceType<typeof Database>) => void,
  options: VerifyOptions = {},
): Promise<Tampered> {
  const path = join(dataFolder(), "ledger.db");
  copyFileSync(original, path);
  const db = new Database(path);
  act(db);
  db.close();
  return { report: await verify(path, options) };
}

const places = ({ report }: Tampered): readonly (readonly [number, string])[] =>
  report.problems.map(({ seq, fault }) => [seq, fault]);

test("a ledger that nobody touched is intact", async () => {
  expect(await verify(original, { head, anchor: head })).toEqual({
    isIntact: true,
    rows: ROWS - 1,
    firstSeq: 1,
    head,
    checkpoints: 5,
    removed: undefined,
    acknowledged: [],
    problems: [],
    problemCount: 0,
  });
});

describe("a changed value is found in the row where it was changed", () => {
  for (const column of COLUMNS.filter((name) => name !== "seq")) {
    test(`in ${column}`, async () => {
      for (const seq of [1, 33, ROWS - 1]) {
        const tampered = await tamper((db) => {
          const text = ["time", "duration_us", "cost_micros", "count"].includes(column)
            ? `${column} + 1`
            : `COALESCE(substr(${column}, 1, max(0, length(${column}) - 1)), '') || 'Z'`;
          db.exec(`UPDATE ledger SET ${column} = ${text} WHERE seq = ${seq}`);
        });
        expect(places(tampered)[0]).toEqual([seq, "changed"]);
        expect(tampered.report.isIntact).toBe(false);
      }
    });
  }

  test("null in place of an empty text, and the other way round", async () => {
    expect(places(await tamper((db) => db.exec("UPDATE ledger SET label = NULL WHERE seq = 7")))).toEqual([
      [7, "changed"],
    ]);
  });

  test("a value moved from one column to the next", async () => {
    const tampered = await tamper((db) =>
      db.exec("UPDATE ledger SET rule = rule || policy_revision, policy_revision = '' WHERE seq = 12"),
    );
    expect(places(tampered)).toEqual([[12, "changed"]]);
  });

  test("the hash itself", async () => {
    const tampered = await tamper((db) =>
      db.exec("UPDATE ledger SET hash = substr(hash, 2) || substr(hash, 1, 1) WHERE seq = 21"),
    );
    expect(places(tampered)[0]).toEqual([21, "changed"]);
    const emptied = await tamper((db) => db.exec("UPDATE ledger SET hash = '' WHERE seq = 21"));
    expect(places(emptied)[0]).toEqual([21, "changed"]);
  });
});

test("a dropped row is named", async () => {
  expect(places(await tamper((db) => db.exec("DELETE FROM ledger WHERE seq = 17")))).toEqual([[17, "missing"]]);
  const several = await tamper((db) => db.exec("DELETE FROM ledger WHERE seq BETWEEN 17 AND 26"));
  expect(several.report.problems).toEqual([{ seq: 17, fault: "missing", detail: "rows 17 to 26 are missing" }]);
});

test("rows dropped at the beginning are not taken for a cut", async () => {
  expect(places(await tamper((db) => db.exec("DELETE FROM ledger WHERE seq <= 5")))).toEqual([[1, "missing"]]);
});

test("a dropped row is found when the others close up", async () => {
  const tampered = await tamper((db) => {
    db.exec("DELETE FROM ledger WHERE seq = 17");
    for (let seq = 18; seq < ROWS; seq += 1) db.exec(`UPDATE ledger SET seq = ${seq - 1} WHERE seq = ${seq}`);
  });
  expect(places(tampered)[0]).toEqual([17, "changed"]);
});

test("swapped rows are both found", async () => {
  const tampered = await tamper((db) => {
    db.exec("UPDATE ledger SET seq = 1000 WHERE seq = 15");
    db.exec("UPDATE ledger SET seq = 15 WHERE seq = 16");
    db.exec("UPDATE ledger SET seq = 16 WHERE seq = 1000");
  });
  expect(places(tampered).map(([seq]) => seq)).toEqual([15, 16, 17]);
});

test("a row copied to the end, or put in between, is found", async () => {
  const columns = [...COLUMNS.slice(1), "hash"].join(", ");
  const behind = await tamper((db) =>
    db.exec(`INSERT INTO ledger (seq, ${columns}) SELECT ${ROWS}, ${columns} FROM ledger WHERE seq = 4`),
  );
  expect(places(behind)).toEqual([[ROWS, "changed"]]);
  const between = await tamper((db) => {
    for (let seq = ROWS - 1; seq >= 30; seq -= 1) db.exec(`UPDATE ledger SET seq = ${seq + 1} WHERE seq = ${seq}`);
    db.exec(`INSERT INTO ledger (seq, ${columns}) SELECT 30, ${columns} FROM ledger WHERE seq = 29`);
  });
  expect(places(between)[0]).toEqual([30, "changed"]);
});

test("a cut tail is found with the published head, and with the one beside the keys", async () => {
  const cutTail = (db: InstanceType<typeof Database>): void => db.exec("DELETE FROM ledger WHERE seq > 40") as never;
  expect((await tamper(cutTail)).report.isIntact).toBe(true);
  expect((await tamper(cutTail, { head })).report.problems).toEqual([
    {
      seq: 41,
      fault: "head",
      detail: `the tail is cut off: the published head is row ${ROWS - 1}, and the ledger ends with row 40`,
    },
  ]);
  expect(places(await tamper(cutTail, { anchor: head }))).toEqual([[41, "head"]]);
});

test("a tail that was rewritten by somebody with the chain's key does not fit the published head", async () => {
  const tampered = await tamper(
    (db) => {
      db.exec("UPDATE ledger SET principal = 'eve' WHERE seq = 58");
      const rows = db
        .prepare(`SELECT ${COLUMNS.join(", ")} FROM ledger WHERE seq >= 57 ORDER BY seq`)
        .raw()
        .all([]) as (string | number)[][];
      let hash = String((db.prepare("SELECT hash FROM ledger WHERE seq = 57").raw().all([]) as string[][])[0]?.[0]);
      for (const [seq, ...draft] of rows.slice(1)) {
        hash = linkHash(keys.chainKey, hash, encodeRow(Number(seq), draft));
        db.prepare("UPDATE ledger SET hash = ? WHERE seq = ?").run([hash, seq]);
      }
    },
    { head },
  );
  expect(places(tampered)).toEqual([[ROWS - 1, "head"]]);
});

test("an edited checkpoint is named, also when the chain was made to fit it", async () => {
  const edited = await tamper((db) =>
    db.exec(`UPDATE ledger SET result = replace(result, '"seq":19', '"seq":18') WHERE seq = 20`),
  );
  expect(places(edited)).toEqual([
    [20, "changed"],
    [20, "checkpoint"],
  ]);
});

test("another chain key, or another signing key, is named and not taken for a changed row", async () => {
  const folder = join(dataFolder(), "keys");
  const others = loadLedgerKeys({ folder, create: true });
  const byOthers = await verify(original, {}, others);
  expect(byOthers.problems).toEqual([{ seq: 0, fault: "key", detail: expect.stringContaining(others.chainKeyId) }]);
  const mixed = await verify(original, {}, { ...others, chainKey: keys.chainKey, chainKeyId: keys.chainKeyId });
  expect(mixed.problems.map(({ seq, fault }) => [seq, fault])).toEqual(
    [10, 20, 30, 40, 50].map((seq) => [seq, "checkpoint"]),
  );
});

test("any byte of the file that carries something: a flip is found", async () => {
  const bytes = readFileSync(original);
  const path = join(dataFolder(), "ledger.db");
  const dump = async (): Promise<string> => {
    const reader = new SqliteReader({ path, loadKeys: () => keys });
    try {
      const page = { limit: 1000, order: "oldest" } as const;
      const [rows, stats] = [await reader.list({}, page), await reader.stats({})];
      return JSON.stringify([rows, stats]);
    } finally {
      await reader.close();
    }
  };
  writeFileSync(path, bytes);
  const untouched = await dump();
  const found = { named: 0, unreadable: 0 };
  const missed: number[] = [];
  // A prime step visits header, table, index and free space alike.
  for (let at = 101; at < bytes.length; at += 211) {
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] ?? 0) ^ 0x04;
    writeFileSync(path, flipped);
    const outcome = await verify(path).then(
      ({ problems }) => (problems.length === 0 ? "intact" : "named"),
      // A file that is no database any more has no rows to name.
      () => "unreadable" as const,
    );
    if (outcome !== "intact") found[outcome] += 1;
    // Unused space says nothing: whoever reads the ledger still sees the same.
    else if ((await dump()) !== untouched) missed.push(at);
  }
  expect(missed).toEqual([]);
  expect(found.named).toBeGreaterThan(50);
});

describe("any byte of a row: a flip is found, and the row is named", () => {
  test.each([25, 33, ROWS - 1])("row %i", async (seq) => {
    const path = join(dataFolder(), "ledger.db");
    copyFileSync(original, path);
    const db = new Database(path);
    // As few old copies of rows as can be.
    db.exec("VACUUM");
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const [row] = db.prepare(`SELECT args, hash FROM ledger WHERE seq = ${seq}`).raw().all([]) as [string, string][];
    db.close();
    const bytes = readFileSync(path);
    // What a row holds stands in one piece, its hash last; no index has arguments or hashes.
    const [from, hashAt] = (row ?? ["", ""]).map((text) => bytes.indexOf(text));
    const to = (hashAt ?? 0) + (row?.[1].length ?? 0);
    expect(to - (from ?? to)).toBeGreaterThan(150);
    // A second copy, in space that was given up, would stand far away.
    expect(to - (from ?? to)).toBeLessThan(1000);
    const wrong: unknown[] = [];
    // Each byte loses or gets another bit; the highest makes what is no text of most of them.
    for (let at = from ?? to; at < to; at++) {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8));
      writeFileSync(path, flipped);
      const { problems } = await verify(path);
      if (problems[0]?.seq !== seq) wrong.push({ at, problems });
      // Whoever looks for what was changed must be able to see it.
      const shown = await show(path, seq);
      if (shown !== seq) wrong.push({ at, shown });
    }
    expect(wrong).toEqual([]);
  });
});

test("an index that says something else than the table is found: statistics come from it", async () => {
  const bytes = readFileSync(original);
  // Principal and name are neighbours in the index alone.
  const at = bytes.indexOf("adacode_runtool");
  expect(at).toBeGreaterThan(0);
  bytes[at] = "e".charCodeAt(0);
  const path = join(dataFolder(), "ledger.db");
  writeFileSync(path, bytes);
  expect((await verify(path)).problems.map(({ seq, fault }) => [seq, fault])).toContainEqual([0, "store"]);
});

test("a head is written as number and hash, and nothing else is one", () => {
  expect(parseHead(formatHead(head))).toEqual(head);
  expect(parseHead(` ${formatHead(head).toUpperCase()} `)).toEqual(head);
  expect(parseHead("12")).toBeUndefined();
  expect(parseHead(`${head.seq}:${head.hash}0`)).toBeUndefined();
  expect(DEFAULT_CONFIG.ledger.checkpointEvery).toBe(1000);
});
