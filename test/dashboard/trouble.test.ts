import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { DashboardServer, HOSTILE, Operator } from "./page-lab.ts";

const POLICY = { defaults: { callsPerMinute: 100_000, concurrency: 1000 }, clients: { eve: { callsPerDay: 5 } } };

/** With what is there when they are complete. */
const VIEWS = [
  ["", /^owl-/],
  ["/ledger", "sandbox_list"],
  ["/spend", "Near a limit"],
  ["/policy?client=ada", "sees and may do"],
  ["/tools", "code_run"],
  ["/approvals", "Nothing waits for a decision."],
] as const;

const server = new DashboardServer({
  governance: { policyFile: "./policy.json" },
});
let ada: Client;
let anna: Operator;

/** Whole, so that nobody reads half of it. */
function writePolicy(text: string): void {
  const file = join(server.place.folder, "policy.json");
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

beforeAll(async () => {
  writePolicy(JSON.stringify(POLICY));
  await server.start();
  ada = await server.client("ada");
  anna = await Operator.signIn(server, { name: "anna" });
});
// Each for itself: what one complains about must not leave the other behind.
afterAll(() => server.stop());
afterAll(() => anna.leave());

test("who is near a limit, and who has reached it, is told beside the spend", async () => {
  await anna.open("/spend");
  await anna.shows("Nobody is near a limit.");
  const eve = await server.client("eve");
  for (let calls = 0; calls < 5; calls += 1) await call(eve, "sandbox_list");
  await anna.page.reload();
  const near = anna.page.getByRole("region", { name: "Near a limit" });
  await near.getByRole("link", { name: "eve" }).waitFor();
  expect(await near.innerText()).toMatch(/5 of 5 .*reached/s);
  expect(await near.getByRole("link").count()).toBe(1);
});

test("a call leads to all calls of its trace, and to no other", async () => {
  await call(ada, "sandbox_list");
  await call(ada, "sandbox_list");
  await anna.open("/ledger?client=ada");
  await anna.page.getByRole("table").getByRole("link").first().click();
  await anna.shows("Place in the chain");
  await anna.page.getByRole("link", { name: /^[0-9a-f]{32}$/ }).click();
  await anna.page.waitForURL(/\/ledger\?trace=[0-9a-f]{32}$/);
  await expect.poll(() => anna.page.getByRole("table").getAttribute("aria-rowcount")).toBe("2");
});

test("a policy that cannot be read again is told with what is wrong, and the one before stays in force", async () => {
  await anna.open("/policy?client=ada");
  await anna.shows("sees and may do");
  expect(await anna.page.getByRole("alert").count()).toBe(0);
  writePolicy(JSON.stringify({ ...POLICY, [HOSTILE]: true }));
  await expect
    .poll(
      async () => {
        await anna.page.reload();
        await anna.shows("sees and may do");
        return anna.page.getByRole("alert").allInnerTexts();
      },
      { timeout: 30_000 },
    )
    .toEqual([expect.stringMatching(/could not be read again.*still in force.*globalThis\.owned/s)]);
  expect(await anna.isOwned()).toBe(false);
  expect(await anna.obstacles()).toEqual([]);
  expect((await call(ada, "sandbox_list")).isError).not.toBe(true);
});

test("a search that finds nothing yet is patient with a server in trouble, and goes on when it is over", async () => {
  const bob = await Operator.signIn(server, { name: "bob" });
  const line = { seq: 4711, time: new Date().toISOString(), client: "ada", tool: "far_down", kind: "tool" };
  const more = { label: null, transport: "http", decision: "allow", rule: "default", outcome: "ok", errorKind: null };
  const numbers = { durationMs: 1, costMicros: 0, sandbox: null, traceId: "0".repeat(32), count: 1 };
  const askedAtMs: number[] = [];
  // As a ledger answers in which the newest hundred thousand rows hold nothing of it.
  await bob.page.route(/\/api\/ledger\?/, async (route) => {
    const query = new URL(route.request().url()).searchParams;
    if (query.has("after")) return route.fulfill({ json: { rows: [], more: true, newest: 200_000 } });
    if (!query.has("before")) return route.fulfill({ json: { rows: [], more: true, next: 100_000, newest: 200_000 } });
    askedAtMs.push(performance.now());
    if (askedAtMs.length < 3) return route.fulfill({ status: 503, json: { error: { kind: "busy", message: "no" } } });
    return route.fulfill({ json: { rows: [{ ...line, ...more, ...numbers }], more: false } });
  });
  await bob.open("/ledger?text=seldom");
  await bob.page.getByRole("row", { name: /far_down/ }).waitFor({ timeout: 30_000 });
  const pauses = askedAtMs.slice(1).map((atMs, index) => Math.round(atMs - (askedAtMs[index] ?? 0)));
  // A timer may be late, but is never early; a millisecond is for the two clocks.
  expect(pauses.map((ms, index) => ms > 1000 * 2 ** index - 50)).toEqual([true, true]);
  expect(bob.problems.every((problem) => problem.includes("503"))).toBe(true);
  await bob.page.context().close();
});

test("what comes after a search is told, and looked for only where it was not looked yet", async () => {
  const asked: { readonly after: number; readonly newest: number }[] = [];
  await anna.page.route(/\/api\/ledger\?.*after=/, async (route) => {
    const response = await route.fetch();
    const { newest }: { newest: number } = JSON.parse(await response.text());
    asked.push({ after: Number(new URL(route.request().url()).searchParams.get("after")), newest });
    await route.fulfill({ response });
  });
  await anna.open("/ledger?text=a-word-of-later");
  await anna.shows("No call matches.");
  await expect.poll(() => asked.length, { timeout: 20_000 }).toBeGreaterThan(0);
  await call(ada, "sandbox_list", { labels: { word: "a-word-of-later" } }).catch(() => undefined);
  await anna.shows("Show 1 new");
  await expect.poll(() => asked.length, { timeout: 20_000 }).toBeGreaterThan(2);
  expect(asked.every(({ after }) => after > 0)).toBe(true);
  expect(asked.slice(1).map(({ after }) => after)).toEqual(asked.slice(0, -1).map(({ newest }) => newest));
  await anna.page.getByRole("button", { name: "Show 1 new" }).click();
  await anna.page.getByRole("row", { name: /sandbox_list/ }).waitFor();
  await anna.page.unrouteAll({ behavior: "wait" });
});

test("nothing that is looked at jumps while the page fills and lives", async () => {
  await anna.page.addInitScript(`
    globalThis.jumps = 0;
    new PerformanceObserver((list) => { for (const { value } of list.getEntries()) globalThis.jumps += value; })
      .observe({ type: "layout-shift", buffered: true });
  `);
  for (const [path, text] of VIEWS) {
    await anna.open(path);
    await anna.page.getByText("Live", { exact: true }).waitFor();
    if (path === "") {
      await anna.shows("No sandbox is in use.");
      await call(ada, "sandbox_create");
    }
    await anna.shows(text);
    // A tenth is what the makers of browsers call good.
    expect([path, (await anna.page.evaluate<number>("globalThis.jumps")) < 0.1]).toEqual([path, true]);
  }
});
