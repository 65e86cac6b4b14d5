import { expect, test } from "vitest";
import { openReader } from "../../src/ledger/open-store.ts";
import { ledgerConfig } from "../unit/ledger/ledger-fixture.ts";
import { call, newFolder, rpc, startGoverned } from "./governance-lab.ts";

const ROUNDS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 100 : 10;
const CLIENTS = 16;
const BUDGET = 1_000_000;
const CONCURRENCY = 100;

/** Calls from many sides until the server is gone; which calls were answered, and how many were sent. */
async function callUntilKilled(
  server: Awaited<ReturnType<typeof startGoverned>>,
  { round, atLeast }: { readonly round: number; readonly atLeast: number },
): Promise<{ readonly answered: readonly string[]; readonly sent: number }> {
  const answered: string[] = [];
  let sent = 0;
  let isOver = false;
  const client = async (): Promise<void> => {
    while (!isOver) {
      sent += 1;
      const text = `round ${round} call ${sent}`;
      try {
        const { body } = await call(server.url, "priced", { text });
        if (body.result !== undefined) answered.push(text);
      } catch {
        // Killed in the middle: nobody was told anything.
        return;
      }
      if (answered.length >= atLeast && !isOver) {
        isOver = true;
        server.child.kill("SIGKILL");
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  await server.exit();
  return { answered, sent };
}

test(
  "[004-R8.2] [004-R8.6] after kill -9 under load every answered call is in the ledger and paid, nothing stays reserved, and the chain verifies",
  async () => {
    const root = newFolder();
    const defaults = { callsPerMinute: 1e9, callsPerDay: 1e9, concurrency: CONCURRENCY, monthlyBudget: BUDGET };
    const start = () => startGoverned({ root, handlers: "priced", governance: { defaults } });
    let answeredInAll = 0;
    let sentInAll = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const { answered, sent } = await callUntilKilled(await start(), { round, atLeast: 30 + round * 7 });
      answeredInAll += answered.length;
      sentInAll += sent;
      const reader = await openReader({ config: ledgerConfig(), dataFolder: root });
      const rows = await reader.list({ name: "priced" }, { limit: sentInAll + 10 });
      const report = await reader.verify({});
      await reader.close();
      expect(report.problems).toEqual([]);
      const recorded = new Set(rows.map(({ args }) => args));
      expect(answered.filter((text) => !recorded.has(JSON.stringify({ text })))).toEqual([]);
    }
    const last = await start();
    const { body } = await rpc(last.url, "tools/call", { name: "priced", arguments: { text: "last" } });
    const quota = body.result?.["_meta"]["owlclaw/quota"];
    await last.stop();
    expect(quota.concurrency.remaining).toBe(CONCURRENCY - 1);
    const paid = BUDGET - quota.budget.remaining;
    // The last call itself is reserved. What was sent and never answered may have been paid or not.
    expect(paid).toBeGreaterThanOrEqual(answeredInAll + 1);
    expect(paid).toBeLessThanOrEqual(sentInAll + 1);
  },
  ROUNDS * 15_000,
);
