import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { DashboardServer, Operator } from "../dashboard/page-lab.ts";

/** The long run has five hundred, all of them real. */
const COUNT = process.env["OWLCLAW_TEST_LONG"] === "1" ? 500 : 60;
const OWNERS = 5;
const AT_ONCE = 5;
const LONG_MS = 900_000;
/** Those in sight, and some around them: fewer than there are, so that all of them would be too many. */
const MOST_ROWS = 50;

/** One workspace for all: the disks of so many small sandboxes could grow to more than this machine has. */
const shared = mkdtempSync(join(tmpdir(), "owlclaw-many-"));
const server = new DashboardServer({
  sandbox: {
    maxTotal: COUNT + 10,
    maxPerPrincipal: COUNT + 10,
    maxTotalMemoryMb: 1_000_000,
    idleTimeoutSeconds: 3600,
    volumes: [shared],
  },
});
const owned: { readonly client: Client; readonly session_id: string }[] = [];
let anna: Operator;
let table: Locator;

beforeAll(async () => {
  await server.start();
  const clients = await Promise.all(Array.from({ length: OWNERS }, (_, at) => server.client(`owner-${at}`)));
  const make = async (first: number): Promise<void> => {
    for (let made = first; made < COUNT; made += AT_ONCE) {
      const client = clients[made % OWNERS];
      if (client === undefined) continue;
      const created = await call(client, "sandbox_create");
      owned.push({ client, session_id: String(created.structuredContent?.["session_id"]) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, first) => make(first)));
  console.log(`${COUNT} sandboxes, ${memoryGigabytes().toFixed(1)} GB (PSS) in all processes below the server`);
  anna = await Operator.signIn(server);
  table = anna.page.getByRole("table", { name: "Sandboxes" });
}, LONG_MS);
// Each for itself: what one complains about must not leave the other behind.
afterAll(() => server.stop(), LONG_MS);
afterAll(() => anna.leave());
afterAll(() => rmSync(shared, { recursive: true, force: true }));

/** Of all processes below the server; pages that they share count in parts. */
function memoryGigabytes(): number {
  const parents = new Map<number, number>();
  for (const pid of readdirSync("/proc").map(Number)) {
    const parent = pid > 0 ? /^PPid:\s+(\d+)/m.exec(readOrEmpty(`/proc/${pid}/status`))?.[1] : undefined;
    if (parent !== undefined) parents.set(pid, Number(parent));
  }
  const isBelow = (pid: number): boolean => pid === server.pid || (parents.has(pid) && isBelow(parents.get(pid) ?? 0));
  const below = [...parents.keys()].filter((pid) => pid !== server.pid && isBelow(pid));
  const kilobytes = below.map((pid) =>
    Number(/^Pss:\s+(\d+)/m.exec(readOrEmpty(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0),
  );
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024 ** 2;
}

/** A process may end between the list and the look. */
function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

async function column(name: string): Promise<readonly string[]> {
  const titles = await table.getByRole("columnheader").allInnerTexts();
  const at = titles.findIndex((title) => title.startsWith(name));
  const rows = await table.locator("[role=row][aria-rowindex]").all();
  return await Promise.all(rows.map((row) => row.locator("> span").nth(at).innerText()));
}

test(
  "as many sandboxes as there are can be counted, filtered, sorted and scrolled, and only the rows in sight exist",
  async () => {
    await expect.poll(() => table.getAttribute("aria-rowcount")).toBe(String(COUNT + 1));
    const { page } = anna;
    const drawn = (): Promise<number> => table.getByRole("row").count();
    expect(await drawn()).toBeLessThan(MOST_ROWS);
    await page.getByLabel("Filter sandboxes").fill("owner-3");
    await anna.shows(`${COUNT / OWNERS} of ${COUNT}`);
    expect(new Set(await column("Owner"))).toEqual(new Set(["owner-3"]));
    await page.reload();
    await anna.shows(`${COUNT / OWNERS} of ${COUNT}`);
    await page.getByLabel("Filter sandboxes").fill("");
    await table.getByRole("button", { name: "Owner" }).click();
    await expect.poll(async () => (await column("Owner"))[0]).toBe("owner-0");
    await table.getByRole("button", { name: "Owner" }).click();
    await expect.poll(async () => (await column("Owner"))[0]).toBe("owner-4");
    expect(new URL(page.url()).search).toBe("?sort=-owner");
    expect(await table.getByRole("columnheader", { name: "Owner" }).getAttribute("aria-sort")).toBe("descending");
    await table.getByRole("rowgroup", { name: "Sandboxes" }).focus();
    await page.keyboard.press("End");
    await table.locator(`[aria-rowindex="${COUNT + 1}"]`).waitFor();
    expect((await column("Owner")).at(-1)).toBe("owner-0");
    expect(await drawn()).toBeLessThan(MOST_ROWS);
    expect(await anna.obstacles()).toEqual([]);
  },
  LONG_MS,
);

test(
  "what runs in them is told while all of them work, and one of them is opened meanwhile",
  async () => {
    await anna.open("?sort=-running");
    const over = new AbortController();
    const work = owned.map(async ({ client, session_id }) => {
      while (!over.signal.aborted) await call(client, "shell_exec", { session_id, command: "echo at work" });
    });
    const hanging = owned[0];
    const held = call(hanging?.client as Client, "shell_exec", {
      session_id: hanging?.session_id,
      command: "until [ -e stop ]; do sleep 0.05; done",
      timeout_seconds: 280,
    });
    held.catch(() => undefined);
    try {
      await expect.poll(async () => (await column("Running"))[0], { timeout: 60_000 }).toBe("shell_exec");
      await expect
        .poll(async () => (await column("Memory")).some((text) => text.endsWith("MB")), { timeout: 60_000 })
        .toBe(true);
      await anna.page.getByLabel("Filter sandboxes").fill("owner-2");
      await anna.shows(`${COUNT / OWNERS} of ${COUNT}`);
      await table.getByRole("link").nth(3).click();
      await anna.page.getByRole("button", { name: "Take over" }).waitFor();
      const output = anna.page.getByRole("group", { name: "Output of shell and code" });
      await expect.poll(() => output.innerText(), { timeout: 60_000 }).toContain("at work");
      await anna.page.goBack();
      await anna.shows(`${COUNT / OWNERS} of ${COUNT}`);
      expect(await table.getByRole("row").count()).toBeLessThan(MOST_ROWS);
    } finally {
      over.abort();
      await Promise.all(work);
      await call(hanging?.client as Client, "shell_exec", { session_id: hanging?.session_id, command: "touch stop" });
      await held;
    }
    await anna.page.getByLabel("Filter sandboxes").fill("");
    await anna.shows("No call is on its way.");
  },
  LONG_MS,
);

test("those that end go from the page while it is looked at", async () => {
  const [first] = owned;
  await anna.open("");
  await expect.poll(() => table.getAttribute("aria-rowcount")).toBe(String(COUNT + 1));
  await call(first?.client as Client, "sandbox_destroy", { session_id: first?.session_id });
  await expect.poll(() => table.getAttribute("aria-rowcount")).toBe(String(COUNT));
});
