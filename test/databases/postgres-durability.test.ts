import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Database } from "../../src/platform/postgres-database.ts";
import { POSTGRES_MISSING, type PostgresService, startPostgres } from "../services/postgres.ts";
import { appendMany, dataFolder, openTestLedger } from "../unit/governance/ledger/ledger-fixture.ts";
import { describeUnless } from "../setup/mandatory.ts";

describeUnless(POSTGRES_MISSING, "a database that does not wait for its disk", () => {
  let postgres: PostgresService;

  beforeAll(async () => {
    postgres = await startPostgres();
    // What nobody waits for stays in memory for this long.
    postgres.sql("ALTER SYSTEM SET wal_writer_delay = '10s'");
    postgres.sql("SELECT pg_reload_conf()");
  });
  afterAll(() => postgres.stop());
  beforeEach(() => {
    postgres.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    postgres.sql("ALTER ROLE owlclaw RESET ALL");
    postgres.sql("ALTER DATABASE postgres RESET ALL");
  });

  const ROLE = "ALTER ROLE owlclaw SET synchronous_commit = off";
  const DATABASE = "ALTER DATABASE postgres SET synchronous_commit = off";

  test.each([ROLE, DATABASE])("loses nothing that was acknowledged when it crashes: %s", async (setting) => {
    postgres.sql(setting);
    const { ledger } = await openTestLedger(dataFolder(), { storeUrl: postgres.url });
    await appendMany(ledger, 20);
    const { seq } = await ledger.reader.head();
    await postgres.kill();
    await postgres.start();
    expect(postgres.sql("SELECT max(seq) FROM ledger")).toBe(String(seq));
  });

  test("goes on waiting for its standbys where it was told to", async () => {
    postgres.sql("ALTER ROLE owlclaw SET synchronous_commit = remote_apply");
    const database = new Database({ url: postgres.url, use: "write" });
    expect(await database.query("SHOW synchronous_commit")).toEqual([{ synchronous_commit: "remote_apply" }]);
    await database.close();
  });
});
