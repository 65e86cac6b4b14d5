import { expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { dataFolder, ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { appendUntilKilled } from "./ledger-killed-appends.ts";

const ROUNDS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 100 : 3;
test(
  "[004-R8.6] whatever was acknowledged is in the ledger after kill -9 of two servers under load, and the chain verifies",
  async () => {
    const folder = dataFolder();
    let total = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const rounds = await Promise.all(
        ["a", "b"].map((name) => appendUntilKilled({ folder, name: `${name}${round}`, atLeast: 40 + round * 37 })),
      );
      const reader = await openReader({ config: ledgerConfig(), dataFolder: folder });
      const report = await reader.verify({});
      expect(report.problems).toEqual([]);
      for (const [seq, call] of rounds.flat()) {
        const row = await reader.get(seq);
        expect([seq, row?.trace_id]).toEqual([seq, call]);
      }
      total += rounds.flat().length;
      expect(report.rows).toBeGreaterThanOrEqual(total);
      await reader.close();
    }
  },
  ROUNDS * 15_000,
);
