import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../integration/governance-lab.ts";
import type { HttpServer } from "../integration/harness.ts";
import { SERVICES_MISSING, type Services, startServices } from "../services/cluster.ts";

const LYING = `CREATE OR REPLACE FUNCTION owlclaw_ledger_append(known_seq BIGINT, known_hash TEXT, batch JSON)
  RETURNS BOOLEAN LANGUAGE plpgsql AS $$ BEGIN RETURN TRUE; END $$`;

/** What lets a table show, hide or swallow rows without breaking the chain. */
const PLANTED = {
  "policy unseen": `ALTER TABLE ledger ENABLE ROW LEVEL SECURITY; ALTER TABLE ledger FORCE ROW LEVEL SECURITY;
    CREATE POLICY unseen ON ledger USING (current_query() NOT LIKE '%principal = %') WITH CHECK (TRUE)`,
  "child table more": "CREATE TABLE more () INHERITS (ledger)",
  "no primary key": "ALTER TABLE ledger DROP CONSTRAINT ledger_pkey",
  "function owlclaw_ledger_append": LYING,
};

describe.skipIf(SERVICES_MISSING !== undefined)(
  `what others put into PostgreSQL${SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`}`,
  () => {
    let services: Services;
    let server: HttpServer;

    beforeAll(async () => {
      services = await startServices();
      server = await services.start();
    });
    afterAll(async () => {
      await server.stop();
      await services.stop();
    });

    test("is named by verify: policies, child tables, a lost key, a changed function", async () => {
      expect((await call(server.url, "echo", { text: "x" })).body).toHaveProperty("result");
      expect((await services.verify()).code).toBe(0);
      for (const sql of Object.values(PLANTED)) services.postgres.sql(sql);
      const { code, out } = await services.verify();
      expect(code).toBe(1);
      for (const name of Object.keys(PLANTED)) expect(out).toContain(name);
    });
  },
);
