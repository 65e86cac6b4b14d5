import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { DashboardServer, Operator, token } from "./page-lab.ts";

/** Notes each notification that the page really makes and closes; `away` is whether somebody looks at the page. */
const WITNESS = `
  globalThis.told = [];
  globalThis.away = true;
  Object.defineProperty(Document.prototype, "hidden", { get: () => globalThis.away });
  globalThis.Notification = class extends Notification {
    constructor(title, options) {
      super(title, options);
      globalThis.told.push("told: " + title + ": " + options.body);
    }
    close() {
      super.close();
      globalThis.told.push("closed");
    }
  };
`;

let server: DashboardServer;
let ada: Client;
let sandbox = "";

beforeAll(async () => {
  const governance: Readonly<Record<string, unknown>> = { tools: { file_write: { confirm: "operator" } } };
  server = await new DashboardServer({ governance }).start();
  ada = await server.client("ada");
  sandbox = String((await call(ada, "sandbox_create")).structuredContent?.["session_id"]);
});
afterAll(() => server.stop());

/** A call that waits until it is denied. */
function wish(path: string): Promise<string> {
  return call(ada, "file_write", { session_id: sandbox, path, content: "x" }).then(() => "written", String);
}

/** Not at a page, so that it can be at the moment when another call comes. */
async function denyOldest(): Promise<void> {
  const headers = { authorization: `Bearer ${await token("root", ["owlclaw:admin"])}` };
  const list = await fetch(`${server.origin}/api/approvals`, { headers });
  const { approvals }: { approvals: readonly { readonly id: string }[] } = JSON.parse(await list.text());
  await fetch(`${server.origin}/api/approvals/${approvals[0]?.id}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ decision: "deny", reason: "" }),
  });
}

async function denyAll(operator: Operator, wishes: readonly Promise<string>[]): Promise<void> {
  const buttons = operator.page.getByRole("button", { name: "Deny" });
  for (let left = wishes.length; left > 0; left -= 1) {
    await buttons.first().click();
    await expect.poll(() => buttons.count()).toBe(left - 1);
  }
  for (const each of wishes) expect(await each).toMatch(/said no/);
}

test("a call that waits is told outside the page to whoever asked for it and is away, and taken back when it is decided", async () => {
  const anna = await Operator.arrive(server, { name: "anna" });
  const bob = await Operator.signIn(server, { name: "bob" });
  const { page } = anna;
  await page.context().grantPermissions(["notifications"], { origin: server.origin });
  await page.addInitScript(WITNESS);
  await anna.open("/approvals");
  await anna.enterToken();
  await bob.open("/approvals");
  const told = (): Promise<readonly string[]> => page.evaluate<readonly string[]>("told");
  const title = (): Promise<string> => page.title();

  const unasked = wish("a.txt");
  await expect.poll(title).toBe("(1) Approvals · OwlClaw");
  await denyAll(bob, [unasked]);
  await expect.poll(title).toBe("Approvals · OwlClaw");
  expect(await told()).toEqual([]);

  await page.getByLabel("Notify me").check();
  await page.reload();
  await anna.shows("Nothing waits for a decision.");
  expect(await page.getByLabel("Notify me").isChecked()).toBe(true);
  const first = wish("b.txt");
  await expect.poll(told).toEqual(["told: OwlClaw: A call waits for your decision."]);
  const second = wish("c.txt");
  await expect.poll(title).toBe("(2) Approvals · OwlClaw");
  await expect.poll(told).toContain("told: OwlClaw: 2 calls wait for your decision.");
  // One goes and another comes, as if at once: there are as many as before, and they are others.
  const third = wish("another.txt");
  await denyOldest();
  expect(await first).toMatch(/said no/);
  for (const operator of [anna, bob])
    await operator.page.getByRole("heading", { name: "another.txt" }).waitFor({ timeout: 20_000 });
  await expect.poll(async () => (await told()).filter((line) => line.startsWith("told")).length).toBe(3);
  for (const operator of [anna, bob])
    await operator.page.getByRole("heading", { name: "b.txt" }).waitFor({ state: "detached" });
  await denyAll(bob, [second, third]);
  await expect.poll(title).toBe("Approvals · OwlClaw");
  await expect.poll(async () => (await told()).at(-1)).toBe("closed");

  await page.evaluate("told.length = 0; away = false");
  const seen = wish("d.txt");
  await expect.poll(title).toBe("(1) Approvals · OwlClaw");
  await denyAll(bob, [seen]);
  await expect.poll(title).toBe("Approvals · OwlClaw");
  expect((await told()).filter((line) => line.startsWith("told"))).toEqual([]);

  await page.evaluate("away = true");
  await page.getByLabel("Notify me").uncheck();
  const unwanted = wish("e.txt");
  await expect.poll(title).toBe("(1) Approvals · OwlClaw");
  await denyAll(bob, [unwanted]);
  expect((await told()).filter((line) => line.startsWith("told"))).toEqual([]);
  await anna.leave();
  await bob.leave();
});

test("a browser that refuses leaves the switch off, and the page says so", async () => {
  const anna = await Operator.signIn(server);
  await anna.open("/approvals");
  await anna.shows("Nothing waits for a decision.");
  const box = anna.page.getByLabel("Notify me");
  await box.click();
  await anna.page.getByRole("alert").getByText("does not let the page notify you").waitFor();
  expect(await box.isChecked()).toBe(false);
  expect(await anna.obstacles()).toEqual([]);
  await anna.leave();
});
