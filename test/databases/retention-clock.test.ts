import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../integration/governance-lab.ts";
import { SERVICES_MISSING, type Services, startServices } from "../services/cluster.ts";

const AHEAD_MS = 40 * 86_400_000;
/** The machine's clock, as this process sees it. */
const AHEAD = `const now = Date.now; const Real = Date; globalThis.Date = class extends Real {
  constructor(...args) { if (args.length > 0) super(...args); else super(now() + ${AHEAD_MS}); }
  static now() { return now() + ${AHEAD_MS}; } };`;

describe.skipIf(SERVICES_MISSING !== undefined)(
  `one of several servers with its clock ahead${SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`}`,
  () => {
    let services: Services;
    beforeAll(async () => {
      services = await startServices();
    });
    afterAll(() => services.stop());

    test("removes no rows that are young for the others", async () => {
      const server = await services.start();
      for (const text of ["first", "second", "third"])
        expect((await call(server.url, "echo", { text })).body).toHaveProperty("result");
      const oldest = (): string => services.postgres.sql("SELECT seq, hash FROM ledger ORDER BY seq LIMIT 1");
      const kept = oldest();
      const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(AHEAD)}` };
      const ledger = { keyFolder: services.keyFolder, retentionDays: 30 };
      const ahead = await services.start({ config: { ledger }, env });
      expect((await call(ahead.url, "echo", { text: "late" })).body).toHaveProperty("result");
      await ahead.stop();
      expect(oldest()).toBe(kept);
      await server.stop();
    });
  },
);
