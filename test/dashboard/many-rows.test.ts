import { afterAll, beforeAll, expect, test } from "vitest";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { openLedger } from "../../src/ledger/open-ledger.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { entry } from "../unit/ledger/ledger-entry.ts";
import { DashboardServer, Operator } from "./page-lab.ts";

/** The long run has a million. */
const ROWS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 1_000_000 : 20_000;
const AT_ONCE = 1000;
const LONG_MS = 600_000;

const server = new DashboardServer({ sandbox: { enabled: false } });

beforeAll(async () => {
  const logger = createLogger({ level: "error", format: "json", write: () => undefined });
  const ledger = await openLedger({ config: DEFAULT_CONFIG, dataFolder: server.place.dataFolder, logger });
  for (let done = 0; done < ROWS; done += AT_ONCE) {
    const rows = Array.from({ length: AT_ONCE }, (_, index) =>
      entry({ time: Date.now(), args: { number: done + index } }),
    );
    await Promise.all(rows.map((row) => ledger.append(row)));
  }
  await ledger.close();
  await server.start();
}, LONG_MS);
afterAll(() => server.stop());

test(
  "any place of a long ledger is a jump away, and only the rows in sight exist",
  async () => {
    const anna = await Operator.signIn(server);
    await anna.open("/ledger");
    const table = anna.page.getByRole("table", { name: "Recorded calls" });
    await expect.poll(async () => Number(await table.getAttribute("aria-rowcount"))).toBeGreaterThan(ROWS);
    const box = table.getByRole("rowgroup", { name: "Recorded calls" });
    const firstShown = async (): Promise<number> => {
      const text = await table.getByRole("link").first().innerText();
      return Number(text.split(/\s/)[0]?.replaceAll(",", ""));
    };
    for (const part of [0.5, 0.25, 0.9, 0.1]) {
      await box.evaluate((element, where) => element.scrollTo(0, element.scrollHeight * where), part);
      await expect.poll(firstShown, { timeout: 20_000 }).toBeLessThan(ROWS * (1 - part) * 1.02 + 100);
      expect(await firstShown()).toBeGreaterThan(ROWS * (1 - part) * 0.95 - 100);
      expect(await table.getByRole("row").count()).toBeLessThan(80);
    }
    await box.focus();
    await anna.page.keyboard.press("End");
    await table.getByRole("link", { name: /^1\s*, / }).waitFor();
    await anna.page.keyboard.press("Home");
    await expect.poll(firstShown).toBeGreaterThan(ROWS - 10);
    await anna.leave();
  },
  LONG_MS,
);
