import { expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { call, newFolder, rpc, startGoverned } from "./governance-lab.ts";
import { modern, postJson } from "./http-client.ts";
import { TASKS_EXTENSION } from "./wire-messages.ts";

const ROUNDS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 100 : 10;
/** The other doors have fewer: they are slower, and there is one of each kind in every round. */
const DOOR_ROUNDS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 30 : 3;
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
      expect(rows.length).toBe(recorded.size);
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

type Server = Awaited<ReturnType<typeof startGoverned>>;

/** Asks once in its own way. Gives what the ledger must hold when the answer came. */
type Door = (url: string, text: string) => Promise<readonly string[]>;

const DOORS: Readonly<Record<string, Door>> = {
  async resource(url, text) {
    const uri = `doors://page/${encodeURIComponent(text)}`;
    const { body } = await rpc(url, "resources/read", { uri });
    return body.result === undefined ? [] : [JSON.stringify({ uri })];
  },
  async batch(url, text) {
    const params = (part: number) => ({ name: "plain", arguments: { text: `${text} part ${part}` } });
    const batch = [1, 2, 3].map((id) => ({ jsonrpc: "2.0", id, method: "tools/call", params: params(id) }));
    const { status } = await postJson(url, batch);
    return status === 200 ? batch.map((each) => JSON.stringify(each.params.arguments)) : [];
  },
  task: (url, text) => beginTask(url, "quick_job", text),
  longTask: (url, text) => beginTask(url, "job", text),
  async refusal(url, text) {
    const { body } = await call(url, "closed", { text });
    return body.error === undefined ? [] : ["a refusal"];
  },
};

async function beginTask(url: string, name: string, text: string): Promise<readonly string[]> {
  const args = { text };
  const capabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const { body } = await modern(url, "tools/call", { name, arguments: args }, { capabilities });
  const id: unknown = body.result?.["taskId"];
  return id === undefined ? [] : [JSON.stringify({ task_id: id, tool: name, arguments: args })];
}

/** Through all doors at once, until each has answered a few times and the server is gone. */
async function doorsUntilKilled(server: Server, round: number): Promise<readonly string[]> {
  const answered: string[] = [];
  const open = new Set(Object.keys(DOORS));
  const client = async ([name, ask]: [string, Door]): Promise<void> => {
    try {
      for (let sent = 1; ; sent += 1) {
        answered.push(...(await ask(server.url, `${name} ${round} ${sent}`)));
        if (sent > 5 + round) open.delete(name);
        if (open.size === 0) server.child.kill("SIGKILL");
      }
    } catch {
      // Killed in the middle: nobody was told anything.
    }
  };
  await Promise.all(Object.entries(DOORS).map(client));
  await server.exit();
  return answered;
}

test(
  "[004-R8.2] after kill -9 everything that was answered through the other doors is in the ledger: resources, batches, tasks, refusals",
  async () => {
    const root = newFolder();
    const defaults = { callsPerMinute: 1e9, callsPerDay: 1e9, concurrency: 10_000, deny: ["closed"] };
    for (let round = 0; round < DOOR_ROUNDS; round += 1) {
      const server = await startGoverned({ root, handlers: "doors", governance: { defaults } });
      const answered = await doorsUntilKilled(server, round);
      const reader = await openReader({ config: ledgerConfig(), dataFolder: root });
      const rows = await reader.list({}, { limit: 100_000 });
      const report = await reader.verify({});
      await reader.close();
      expect(report.problems).toEqual([]);
      const recorded = new Set(rows.map(({ args }) => args));
      expect(answered.filter((each) => each !== "a refusal" && !recorded.has(each))).toEqual([]);
      // Those that repeat the first of a minute are counted in memory; the first of each server is a row.
      expect(answered).toContain("a refusal");
      const refusals = rows.filter(({ name, outcome }) => name === "closed" && outcome === "refused");
      expect(refusals.length).toBeGreaterThan(round);
    }
  },
  DOOR_ROUNDS * 30_000,
);
