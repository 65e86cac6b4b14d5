import { afterAll, beforeAll, expect, test } from "vitest";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { openStoreAndLedger } from "../../src/governance/store/open-governance-store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { entry } from "../unit/governance/ledger/ledger-entry.ts";
import { DashboardServer, Operator } from "./page-lab.ts";

/** The long run has a million. */
const IS_LONG = process.env["OWLCLAW_TEST_LONG"] === "1";
const ROWS = IS_LONG ? 1_000_000 : 5000;
const AT_ONCE = 1000;
const LONG_MS = 600_000;

const server = new DashboardServer({ sandbox: { enabled: false } });

beforeAll(async () => {
  const logger = createLogger({ level: "error", format: "json", write: () => undefined });
  const { ledger } = await openStoreAndLedger({ config: DEFAULT_CONFIG, dataFolder: server.place.dataFolder, logger });
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
      const wanted = ROWS * (1 - part);
      const isThere = async (): Promise<boolean> => {
        const seq = await firstShown();
        return seq > wanted * 0.95 - 100 && seq < wanted * 1.02 + 100;
      };
      await expect.poll(isThere, { timeout: 20_000 }).toBe(true);
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

/** Whether rows cover the box from its top to its bottom, and how many of those in sight have not come yet. */
const SIGHT = `(() => {
  const box = document.querySelector(".rows-box").getBoundingClientRect();
  const rows = [...document.querySelectorAll(".rows-shown .row")].map((row) => [row, row.getBoundingClientRect()]);
  const seen = rows.filter(([, { top, bottom }]) => bottom > box.top && top < box.bottom);
  const isCovered = rows[0][1].top <= box.top + 1 && rows.at(-1)[1].bottom >= box.bottom - 1;
  const waiting = seen.filter(([row]) => row.classList.contains("waiting")).length;
  return { isCovered, waiting, seen: seen.length, first: Number(seen[0][0].getAttribute("aria-rowindex")) };
})()`;
const FRAME = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))";
const TURNS = IS_LONG ? 150 : 75;
/** The page knows what comes in sight nearly two turns before it does. */
const EARLY_TURNS = 2;

interface Sight {
  readonly isCovered: boolean;
  readonly waiting: number;
  readonly seen: number;
  readonly first: number;
}

/** What the page asks for, and in which turn it did. */
function askedRows(page: Operator["page"]): { turn: number; isWaitingSince(turn: number): boolean } {
  const turns = new Map<unknown, number>();
  const asked = {
    turn: 0,
    isWaitingSince: (turn: number): boolean => [...turns.values()].some((since) => since <= turn),
  };
  page.on("request", (request) => {
    if (new URL(request.url()).pathname === "/api/ledger") turns.set(request, asked.turn);
  });
  page.on("requestfinished", (request) => void turns.delete(request));
  page.on("requestfailed", (request) => void turns.delete(request));
  return asked;
}

test(
  "rows follow the wheel, and are there before they come in sight",
  async () => {
    const anna = await Operator.signIn(server);
    await anna.open("/ledger");
    await anna.page.locator(".rows-shown .row").first().hover();
    const sights: Sight[] = [];
    const asked = askedRows(anna.page);
    for (let turn = 0; turn < TURNS; turn += 1) {
      // How early the page asks is its own matter; how fast a busy server answers is not.
      await expect.poll(() => asked.isWaitingSince(turn - EARLY_TURNS)).toBe(false);
      asked.turn = turn;
      await anna.page.mouse.wheel(0, 200);
      await anna.page.evaluate(FRAME);
      sights.push(await anna.page.evaluate<Sight>(SIGHT));
    }
    expect(sights.filter(({ isCovered }) => !isCovered)).toEqual([]);
    const places = sights.map(({ first }) => first);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    // Six and two thirds rows each turn, over the ends of loaded pages of 200 rows.
    expect(places.at(-1)).toBeGreaterThan(6 * TURNS);
    const blank = sights.filter(({ waiting, seen }) => waiting > seen / 2).length;
    expect(blank / TURNS).toBeLessThanOrEqual(0.05);
    await anna.leave();
  },
  LONG_MS,
);

test("a filter says how many rows there are, also where few of them have come yet", async () => {
  const anna = await Operator.signIn(server);
  await anna.open("/ledger?client=ada");
  const title = anna.page.getByRole("heading", { level: 2, name: /rows$/ });
  await expect.poll(() => title.innerText(), { timeout: 20_000 }).toBe(`${ROWS.toLocaleString("en-US")} rows`);
  await anna.leave();
});

test("a call from before the server started says why nobody knows where its time went", async () => {
  const anna = await Operator.signIn(server);
  await anna.open("/ledger/5");
  const stages = anna.page.getByRole("region", { name: "Time by stage" });
  await expect.poll(() => stages.innerText(), { timeout: 20_000 }).toContain("It is not known any more");
  await anna.leave();
});
