import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { LocalDays } from "../../src/operator/local-days.ts";
import { openStoreAndLedger } from "../../src/governance/store/open-governance-store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { call } from "../e2e/sandbox-client.ts";
import { entry } from "../unit/governance/ledger/ledger-entry.ts";
import { DashboardServer, Operator } from "./page-lab.ts";

/** Most of the time another day than in UTC. */
const TIME_ZONE = "Pacific/Kiritimati";
const DAY_MS = 86_400_000;
const HANDLER = `import { defineHandler, z } from "owlclaw";
export const greet = defineHandler({
  name: "greet",
  description: "Greets.",
  input: z.object({}),
  run: () => "hello",
});
`;

const governance: Readonly<Record<string, unknown>> = {
  timeZone: TIME_ZONE,
  tools: { greet: { cost: { fixed: 2 } } },
  clients: { zoe: { monthlyBudget: 5 } },
};
const server = new DashboardServer({ sandbox: { enabled: false }, governance, handlers: { paths: ["./handlers"] } });
const days = new LocalDays(TIME_ZONE);
const startedMs = Date.now();
const todayMs = days.startOfLastMs(1, startedMs);
let anna: Operator;

/** Who called, when, how often and at what price, each time. */
const CALLS = [
  { principal: "bob", time: todayMs, times: 6, costMicros: 0 },
  { principal: "ada", time: todayMs - 1, times: 2, costMicros: 0 },
  { principal: "ada", time: todayMs - 40 * DAY_MS, times: 1, costMicros: 3_000_000 },
  { principal: "eve", time: todayMs - 40 * DAY_MS, times: 3, costMicros: 500_000 },
];

beforeAll(async () => {
  const { folder, dataFolder } = server.place;
  mkdirSync(join(folder, "handlers"));
  writeFileSync(join(folder, "handlers", "greet.ts"), HANDLER);
  const logger = createLogger({ level: "error", format: "json", write: () => undefined });
  const { ledger } = await openStoreAndLedger({ config: DEFAULT_CONFIG, dataFolder, logger });
  for (const { times, ...row } of CALLS) for (let n = 0; n < times; n += 1) await ledger.append(entry(row));
  await ledger.close();
  await server.start();
  anna = await Operator.signIn(server);
});
// Each for itself: what one complains about must not leave the other behind.
afterAll(() => server.stop());
afterAll(() => anna.leave());

async function widthOf(bar: Locator): Promise<number> {
  return Number(await bar.getAttribute("width"));
}

/** How long the bars of a table are, the longest being 1. */
async function shares(title: string): Promise<Record<string, number>> {
  const rows = await anna.page.getByRole("group", { name: title }).locator("tbody tr").all();
  const widths = await Promise.all(
    rows.map(async (row) => [await row.getByRole("link").innerText(), await widthOf(row.locator("rect.bar"))] as const),
  );
  const most = Math.max(...widths.map(([, width]) => width));
  return Object.fromEntries(widths.map(([name, width]) => [name, Math.round((width / most) * 1000) / 1000]));
}

/** How high the column of a day is, to the top of the drawing's scale. */
async function heightOf(day: string): Promise<number> {
  const name = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
  const column = anna.page.locator(".chart .column", { hasText: `${name.format(Date.parse(day))}:` });
  expect(await column.count()).toBe(1);
  const [bar, hit] = [column.locator("rect.bar"), column.locator("rect.hit")];
  if ((await bar.count()) === 0) return 0;
  const [height, most] = [await bar.getAttribute("height"), await hit.getAttribute("height")];
  return Math.round((Number(height) / Number(most)) * 1000) / 1000;
}

test("where nothing costs anything, bars and columns are as long as there were calls, by the days of the policy", async () => {
  await anna.open("/spend?range=week");
  await anna.shows("Calls by day");
  await anna.shows(`days of ${TIME_ZONE}`);
  expect(await shares("By client")).toEqual({ bob: 1, ada: 0.333 });
  // The scale ends at the next of 1, 2, 5, 10.
  expect(await heightOf(days.dayAt(todayMs))).toBe(0.6);
  expect(await heightOf(days.dayAt(todayMs - 1))).toBe(0.2);
  expect(await heightOf(days.dayAt(todayMs - 2 * DAY_MS))).toBe(0);
  expect(await anna.page.locator(".chart .column").count()).toBeGreaterThanOrEqual(7);
});

test("where something costs, bars and columns are as long as it is dear", async () => {
  await anna.open("/spend?range=quarter");
  await anna.shows("Spent by day");
  expect(await shares("By client")).toEqual({ ada: 1, eve: 0.5, bob: 0 });
  expect(await heightOf(days.dayAt(todayMs - 40 * DAY_MS))).toBe(0.9);
  expect(await heightOf(days.dayAt(todayMs))).toBe(0);
});

test("a budget's meter is filled as far as it is spent, whatever time is looked at", async () => {
  await anna.open("/spend?range=week");
  await anna.page.getByRole("img", { name: /^zoe: 0.00 of 5.00,/ }).waitFor();
  await call(await server.client("zoe"), "greet", {});
  await anna.open("/spend?range=week");
  const meter = anna.page.getByRole("img", { name: /^zoe: 2.00 of 5.00,/ });
  await meter.waitFor();
  const [used, forecast] = [await widthOf(meter.locator(".used")), await widthOf(meter.locator(".forecast"))];
  const limit = meter.locator(".limit");
  const most = (await limit.count()) === 0 ? 200 : Number(await limit.getAttribute("x")) + 1;
  expect(used / most).toBeCloseTo(0.4, 2);
  expect(used / forecast).toBeCloseTo(days.monthPart(Date.now()), 2);
  await anna.page.getByText("Expected this month").waitFor();
});
