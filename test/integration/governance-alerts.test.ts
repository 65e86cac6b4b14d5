import { once } from "node:events";
import { createServer } from "node:http";
import { expect, test } from "vitest";
import { call, newFolder, writeFile } from "./governance-lab.ts";
import { startHttp, until } from "./harness.ts";

interface Alert {
  readonly event: string;
  readonly severity: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Hears alerts, as an operator's webhook does. */
async function startWebhook(): Promise<{ readonly url: string; readonly heard: Alert[]; close(): void }> {
  const heard: Alert[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      heard.push(JSON.parse(Buffer.concat(chunks).toString()));
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/alerts`,
    heard,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("50, 80 and 100 % of a month's budget are told to the webhook and the log once each, over restarts too", async () => {
  const webhook = await startWebhook();
  const root = newFolder();
  const governance = { defaults: { monthlyBudget: 10 }, tools: { echo: { cost: 1 } } };
  const start = () =>
    startHttp({ config: { governance, sandbox: { root, enabled: false }, alerts: { webhook: webhook.url } } });
  const thresholds = (): unknown[] =>
    webhook.heard.filter(({ event }) => event === "budget_threshold").map(({ facts }) => facts["percent"]);
  const first = await start();
  const spend = async (url: string, calls: number): Promise<void> => {
    for (let each = 0; each < calls; each += 1) await call(url, "echo", { text: "x" });
  };
  await spend(first.url, 6);
  await until(
    async () => thresholds(),
    (percents) => percents.length > 0,
  );
  await first.stop();
  expect(thresholds()).toEqual([50]);
  const logged = first.logs.filter(({ message }) => message === "budget threshold passed");
  expect(logged).toMatchObject([
    {
      level: "warning",
      rule: "defaults.monthlyBudget",
      percent: 50,
      spent: 5,
      limit: 10,
      of: '["principal","anonymous"]',
    },
  ]);
  const second = await start();
  // At the same time, so that many bookings come close to one line; two too many.
  await Promise.all(Array.from({ length: 6 }, () => call(second.url, "echo", { text: "x" })));
  await second.stop();
  expect(thresholds()).toEqual([50, 80, 100]);
  const [half, , all] = webhook.heard.filter(({ event }) => event === "budget_threshold");
  expect(half).toMatchObject({
    severity: "warning",
    facts: { of: '["principal","anonymous"]', rule: "defaults.monthlyBudget", percent: 50, spent: 5, limit: 10 },
  });
  expect(all).toMatchObject({ severity: "error", facts: { spent: 10 } });
  webhook.close();
});

test("a budget that is raised ends the trouble that was told: webhook and log say so, once", async () => {
  const webhook = await startWebhook();
  const policy = (monthlyBudget: number): string =>
    writeFile("raised.json", { defaults: { monthlyBudget }, tools: { echo: { cost: 1 } } });
  const governance = { policyFile: policy(2) };
  const server = await startHttp({
    config: { governance, sandbox: { root: newFolder(), enabled: false }, alerts: { webhook: webhook.url } },
  });
  const told = (): string[] =>
    webhook.heard
      .filter(({ event }) => event.startsWith("budget_"))
      .map(({ event, severity, facts }) => `${severity} ${event} ${String(facts["percent"])}`);
  const hears = async (count: number): Promise<string[]> => until(told, ({ length }) => length >= count);
  for (let each = 0; each < 2; each += 1) await call(server.url, "echo", { text: "x" });
  const passed = ["warning budget_threshold 50", "warning budget_threshold 80", "error budget_threshold 100"];
  expect(await hears(3)).toEqual(passed);
  policy(100);
  await server.logged("policy changed");
  for (let each = 0; each < 3; each += 1) await call(server.url, "echo", { text: "x" });
  expect(await hears(4)).toEqual([...passed, "info budget_recovered 100"]);
  expect(await server.logged("budget threshold holds no longer")).toMatchObject({
    rule: "defaults.monthlyBudget",
    percent: 100,
    spent: 2,
    limit: 100,
    of: '["principal","anonymous"]',
  });
  await server.stop();
  expect(told()).toHaveLength(4);
  webhook.close();
});
