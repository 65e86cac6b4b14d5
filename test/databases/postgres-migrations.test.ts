import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { Database } from "../../src/platform/postgres-database.ts";
import { MIGRATIONS } from "../../src/governance/ledger/postgres/schema.ts";
import { POSTGRES_MISSING, type PostgresService, startPostgres } from "../services/postgres.ts";
import { appendMany, dataFolder, openTestLedger } from "../unit/governance/ledger/ledger-fixture.ts";
import { describeUnless } from "../setup/mandatory.ts";

const MAKE = "CREATE TABLE notes (text TEXT NOT NULL)";
const WIDEN = "ALTER TABLE notes ADD COLUMN by TEXT NOT NULL DEFAULT 'nobody'";

describeUnless(POSTGRES_MISSING, "a store of an older version", () => {
  let postgres: PostgresService;

  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.stop());
  beforeEach(() => {
    postgres.sql("DROP TABLE IF EXISTS ledger, ledger_meta, owlclaw_schema, notes");
  });

  function open(): Database {
    const database = new Database({ url: postgres.url, use: "write" });
    onTestFinished(() => database.close());
    return database;
  }

  const version = (part: string): number =>
    Number(postgres.sql(`SELECT version FROM owlclaw_schema WHERE part = '${part}'`));

  test("is brought forward by what it lacks, with all that is in it", async () => {
    await open().migrate("pauses", [MAKE]);
    postgres.sql("INSERT INTO notes VALUES ('kept')");
    await open().migrate("pauses", [MAKE, WIDEN]);
    expect(postgres.sql("SELECT text, by FROM notes").trim()).toBe("kept|nobody");
    expect(version("pauses")).toBe(2);
    // Once more changes nothing.
    await open().migrate("pauses", [MAKE, WIDEN]);
    expect(version("pauses")).toBe(2);
  });

  test("is brought forward once by servers that start together", async () => {
    await open().migrate("pauses", [MAKE]);
    await Promise.all(Array.from({ length: 6 }, () => open().migrate("pauses", [MAKE, WIDEN])));
    expect(version("pauses")).toBe(2);
  });

  test("stays as it was when a step fails, and the server that has come too early is told", async () => {
    await open().migrate("pauses", [MAKE]);
    const broken = open().migrate("pauses", [MAKE, WIDEN, "ALTER TABLE nothing ADD COLUMN x TEXT"]);
    await expect(broken).rejects.toMatchObject({ kind: "store_unavailable" });
    expect(version("pauses")).toBe(1);
    postgres.sql("INSERT INTO notes VALUES ('still one column')");
    await open().migrate("pauses", [MAKE, WIDEN]);
    await expect(open().migrate("pauses", [MAKE])).rejects.toMatchObject({
      kind: "store_unavailable",
      message: "pauses in store.url have the schema 2, and this version knows 1",
    });
    expect(version("pauses")).toBe(2);
  });

  test("[004-R8.6] holds a ledger that goes on where it was, and verifies from its first row", async () => {
    const folder = dataFolder();
    const settings = { storeUrl: postgres.url };
    const { ledger: older } = await openTestLedger(folder, settings);
    await appendMany(older, 20);
    await older.close();
    const rows = Number(postgres.sql("SELECT count(*) FROM ledger"));
    // The first version had the tables alone.
    postgres.sql("DROP FUNCTION owlclaw_ledger_append; UPDATE owlclaw_schema SET version = 1 WHERE part = 'ledger'");
    const { ledger: newer } = await openTestLedger(folder, settings);
    expect(version("ledger")).toBe(MIGRATIONS.length);
    const [next] = await appendMany(newer, 20);
    expect(next).toBe(rows + 1);
    expect(await newer.reader.verify({})).toMatchObject({ isIntact: true, rows: rows + 20 });
  });
});
