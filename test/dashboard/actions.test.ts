import { readFile } from "node:fs/promises";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { DashboardServer, Operator } from "./page-lab.ts";

let server: DashboardServer;
let ada: Client;
let anna: Operator;
let bob: Operator;

beforeAll(async () => {
  const rules = [
    {
      id: "no-rm",
      when: 'tool == "shell_exec" && args.command.contains("rm -rf")',
      effect: "deny",
      reason: "use file tools",
    },
  ];
  const governance: Readonly<Record<string, unknown>> = {
    defaults: { callsPerMinute: 100_000, concurrency: 1000 },
    tools: { file_write: { confirm: "operator" }, code_run: { cost: { fixed: 0.25 } } },
    clients: { ada: { monthlyBudget: 100 } },
    rules,
  };
  server = await new DashboardServer({ governance, sandbox: { workspace: "/project" } }).start();
  ada = await server.client("ada");
  anna = await Operator.signIn(server, { name: "anna" });
  bob = await Operator.signIn(server, { name: "bob", theme: "dark" });
});
// Each for itself: what one complains about must not leave the others behind.
afterAll(() => server.stop());
afterAll(() => anna.leave());
afterAll(() => bob.leave());

beforeEach(async () => {
  for (const operator of [anna, bob]) {
    await operator.open("");
    await operator.shows("Live");
  }
});
afterEach(() => {
  for (const operator of [anna, bob]) operator.isContent();
});

/** What a screen reader was given to say last. */
async function spokenTo({ page }: Operator): Promise<string> {
  return (await page.locator(".unseen[role=status]").innerText()).trim();
}

async function newSandbox(): Promise<string> {
  const created = await call(ada, "sandbox_create");
  return String(created.structuredContent?.["session_id"]);
}

test("a sandbox and a call appear and go before the eyes of everybody who looks", async () => {
  await anna.shows("No sandbox is in use.");
  const id = await newSandbox();
  const running = call(ada, "shell_exec", { session_id: id, command: "until [ -e stop ]; do sleep 0.05; done" });
  for (const { page } of [anna, bob]) {
    await page.getByRole("table", { name: "Sandboxes" }).getByRole("cell", { name: "shell_exec" }).waitFor();
    const row = page.getByRole("group", { name: "Calls in flight" }).getByRole("row", { name: /shell_exec/ });
    await row.getByText("running").waitFor();
  }
  await anna.page.getByLabel("Filter sandboxes").fill("nobody's");
  await anna.shows("No sandbox matches.");
  await anna.page.getByLabel("Filter sandboxes").fill("ada");
  await anna.page.getByRole("row", { name: /ada/ }).first().waitFor();
  await call(ada, "shell_exec", { session_id: id, command: "touch stop" });
  await running;
  for (const operator of [anna, bob]) await operator.shows("No call is on its way.");
  await call(ada, "sandbox_destroy", { session_id: id });
  await bob.shows("No sandbox is in use.");
  // The call that ended it is told to be over with the next change.
  await expect.poll(() => bob.page.getByRole("table").count()).toBe(0);
});

test("a pause of everybody refuses calls at once, stands on every page of every operator, and ends with a click", async () => {
  await anna.page.getByRole("button", { name: "Pause all" }).click();
  await anna.page.getByLabel("Why? The client is told.").fill("something is odd");
  await anna.page.getByRole("dialog").getByRole("button", { name: "Pause all" }).click();
  await bob.shows("All clients are paused");
  await expect.poll(() => spokenTo(bob)).toBe("anna has paused all clients: something is odd");
  await expect.poll(() => spokenTo(anna)).toBe("All clients are paused.");
  await bob.page.getByRole("link", { name: "Spend" }).click();
  await bob.page.getByRole("heading", { level: 1, name: "Spend and limits" }).waitFor();
  await bob.shows("something is odd");
  expect(await bob.obstacles()).toEqual([]);
  await expect(call(ada, "sandbox_list")).rejects.toThrow(/paused|something is odd/);
  await bob.page.getByRole("button", { name: "Resume all" }).click();
  await anna.page.getByRole("region", { name: "Paused clients" }).waitFor({ state: "detached" });
  for (const operator of [anna, bob]) await expect.poll(() => spokenTo(operator)).toBe("Clients may call again.");
  await call(ada, "sandbox_list");
});

test("one client is paused where clients are listed, and others go on", async () => {
  const eve = await server.client("eve");
  await call(eve, "sandbox_list");
  await anna.open("/policy");
  await anna.page.getByRole("button", { name: "Pause eve" }).click();
  await anna.page.getByRole("dialog", { name: "Pause eve?" }).waitFor();
  await anna.page.keyboard.type("too many questions");
  await anna.page.keyboard.press("Enter");
  await bob.shows("eve is paused");
  await expect(call(eve, "sandbox_list")).rejects.toThrow(/too many questions/);
  await call(ada, "sandbox_list");
  await anna.page.getByRole("button", { name: "Resume eve" }).click();
  await bob.page.getByRole("region", { name: "Paused clients" }).waitFor({ state: "detached" });
  await call(eve, "sandbox_list");
});

test("what waits for a decision is told in the title, shows what would change, and goes with the decision", async () => {
  const id = await newSandbox();
  await call(ada, "shell_exec", { session_id: id, command: "printf 'port: 80\\nhost: a\\n' > app.yaml" });
  const written = call(ada, "file_write", { session_id: id, path: "app.yaml", content: "port: 443\nhost: a\n" });
  await expect.poll(() => bob.page.title()).toBe("(1) Now · OwlClaw");
  await anna.page.getByRole("link", { name: "Approvals" }).click();
  await anna.shows("ada");
  await anna.shows("+ port: 443");
  await anna.page.getByRole("article").getByRole("link", { name: /^owl-/ }).waitFor();
  await anna.page.getByLabel("Reason, for the ledger").fill("it is late");
  await anna.page.getByRole("button", { name: "Approve" }).click();
  await written;
  await anna.shows("Nothing waits for a decision.");
  await expect.poll(() => bob.page.title()).toBe("Now · OwlClaw");
  expect((await call(ada, "file_read", { session_id: id, path: "app.yaml" })).content[0]?.text).toContain("443");
  const refused = call(ada, "file_write", { session_id: id, path: "other.yaml", content: "no" });
  const seen = anna.shows("A new file.");
  await Promise.all([expect(refused).rejects.toThrow(/said no/), seen.then(() => deny(anna))]);
  await call(ada, "sandbox_destroy", { session_id: id });
});

async function deny({ page }: Operator): Promise<void> {
  await page.getByRole("button", { name: "Deny" }).click();
}

test("files begin where the server's sandboxes have them", async () => {
  const id = await newSandbox();
  await call(ada, "shell_exec", { session_id: id, command: "mkdir src && echo found > src/here.txt" });
  await anna.open("");
  await anna.page.getByRole("link", { name: /^owl-/ }).click();
  await anna.page.getByRole("link", { name: "Files" }).click();
  await anna.page.getByRole("button", { name: "src" }).click();
  await anna.shows("Upload into /project/src");
  await anna.page.getByRole("button", { name: /here\.txt/ }).click();
  const content = anna.page.getByRole("group", { name: "Content of /project/src/here.txt" });
  await expect.poll(() => content.innerText()).toContain("found");
  await call(ada, "sandbox_destroy", { session_id: id });
});

test("the ledger is filtered by what the address says, shows one call whole, is verified and exported", async () => {
  const id = await newSandbox();
  await call(ada, "code_run", { session_id: id, code: "seven = 7\nprint(6 * seven)" });
  await call(ada, "sandbox_destroy", { session_id: id });
  await anna.open("/ledger");
  await anna.page.getByLabel("Tool", { exact: true }).fill("code_run");
  await anna.page.waitForURL(/tool=code_run/);
  await anna.shows(/^\d+ rows?$/);
  const table = anna.page.getByRole("table", { name: "Recorded calls" });
  await expect.poll(() => table.getByRole("cell", { name: "shell_exec", exact: true }).count()).toBe(0);
  await anna.page.getByLabel("Decision").selectOption("allow");
  await anna.page.waitForURL(/decision=allow/);
  const download = anna.page.waitForEvent("download");
  await anna.page.getByRole("link", { name: "Export CSV" }).click();
  const text = await readFile(await (await download).path(), "utf8");
  expect(text).toContain("code_run");
  expect(text).not.toContain("sandbox_destroy");
  await table.getByRole("link").first().click();
  await anna.shows("Time by stage");
  await anna.page.getByRole("group", { name: "code" }).getByText("print(6 * seven)").waitFor();
  await anna.shows("0.25");
  await anna.page.goBack();
  await anna.page.getByRole("button", { name: "Verify" }).click();
  await anna.shows("hold together");
  expect(await anna.obstacles()).toEqual([]);
});

test("new rows wait behind a button, and a long ledger is scrolled to its first row", async () => {
  await anna.open("/ledger");
  await anna.shows(/^[\d,]+ rows?$/);
  for (let round = 0; round < 15; round += 1) {
    await Promise.all(Array.from({ length: 20 }, () => call(ada, "sandbox_list")));
  }
  await anna.page.getByRole("button", { name: /^Show .* new$/ }).click();
  const table = anna.page.getByRole("table", { name: "Recorded calls" });
  await expect.poll(async () => Number(await table.getAttribute("aria-rowcount"))).toBeGreaterThan(300);
  expect(await table.getByRole("row").count()).toBeLessThan(80);
  await table.getByRole("rowgroup", { name: "Recorded calls" }).focus();
  await anna.page.keyboard.press("End");
  await table.getByRole("link", { name: /^1\s*, / }).waitFor();
});

test("spend is told by client, tool and day, against the budget", async () => {
  const id = await newSandbox();
  await call(ada, "code_run", { session_id: id, code: "1" });
  await call(ada, "sandbox_destroy", { session_id: id });
  await anna.open("/spend");
  await anna.shows(/of 100\.00/);
  await anna.page.getByRole("img", { name: /^Spent by day/ }).waitFor();
  await anna.page.getByRole("link", { name: "7 days" }).click();
  await anna.page.waitForURL(/range=week/);
  await anna.page.getByRole("group", { name: "By tool" }).getByRole("link", { name: "code_run" }).click();
  await anna.page.waitForURL(/\/ledger\?tool=code_run/);
  expect(await anna.heading()).toBe("Ledger");
});

test("the policy explains itself, and a tool is tried with a form made of its schema", async () => {
  await anna.open("/policy?client=ada");
  await anna.shows("What ada sees and may do");
  const form = anna.page.getByRole("region", { name: "What would the policy say?" });
  await form.getByLabel("Tool").fill("shell_exec");
  await form.getByLabel("Arguments, as JSON").fill('{"command": "rm -rf /"}');
  await form.getByRole("button", { name: "Explain" }).click();
  await form.getByText("use file tools").waitFor();
  await form.getByLabel("Arguments, as JSON").fill("{");
  await form.getByRole("button", { name: "Explain" }).click();
  await form.getByText("The arguments are not JSON.").waitFor();
  await anna.open("/tools/sandbox_list");
  await anna.page.getByRole("button", { name: "Call", exact: true }).click();
  await anna.page.getByRole("group", { name: "Content 1" }).waitFor();
  expect(await anna.obstacles()).toEqual([]);
  await anna.open("/ledger?client=anna");
  await anna.page.getByRole("table").getByRole("cell", { name: "sandbox_list" }).first().waitFor();
});

test("everything is reached with keys, on a narrow screen too", async () => {
  const { page } = anna;
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  expect(await anna.obstacles()).toEqual([]);
  await page.keyboard.press("Escape");
  for (const [key, title] of [
    ["l", "Ledger"],
    ["a", "Approvals"],
    ["s", "Spend and limits"],
    ["p", "Clients and policy"],
    ["t", "Tools"],
    ["k", "Skills and handlers"],
    ["n", "Now"],
  ]) {
    await page.keyboard.press("g");
    await page.keyboard.press(String(key));
    await page.getByRole("heading", { level: 1, name: String(title) }).waitFor();
  }
  await page.keyboard.press("Shift+P");
  await page.getByRole("dialog", { name: "Pause all clients?" }).waitFor();
  await page.keyboard.press("Escape");
  await page.reload();
  await anna.shows("Live");
  await page.keyboard.press("Tab");
  expect(await page.evaluate<string>("document.activeElement.textContent")).toBe("Skip to content");
  await page.setViewportSize({ width: 360, height: 740 });
  for (const path of ["", "/ledger", "/spend", "/policy", "/tools", "/skills", "/approvals"]) {
    await anna.open(path);
    await anna.shows("Live");
    const overPx = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    expect({ path, overPx }).toEqual({ path, overPx: 0 });
  }
});

test("the heading takes the focus with the view, and not from a link that was reached after it", async () => {
  await newSandbox();
  const { page } = anna;
  await page.getByRole("main").getByRole("link", { name: /^owl-/ }).first().click();
  await page.getByRole("link", { name: "Files", exact: true }).waitFor();
  const focused = await page.evaluate<string>(`(async () => {
    const links = document.querySelector("nav[aria-label='Views of this sandbox']");
    const link = (title) => [...links.querySelectorAll("a")].find((each) => each.textContent === title);
    const isShown = new Promise((resolve) => {
      new MutationObserver((_, observer) => {
        if (link("Code").getAttribute("aria-current") === null) return;
        observer.disconnect();
        link("Files").focus();
        resolve();
      }).observe(links, { attributes: true, subtree: true });
    });
    link("Code").focus();
    link("Code").click();
    await isShown;
    await new Promise((resolve) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(resolve)), 200));
    return document.activeElement.textContent;
  })()`);
  expect(focused).toBe("Files");
});

test("a sandbox, a call and a tool's form are opened and used with keys alone, on a narrow screen", async () => {
  const { page } = anna;
  const id = await newSandbox();
  await call(ada, "shell_exec", { session_id: id, command: "echo here" });
  await page.setViewportSize({ width: 360, height: 740 });
  const press = async (name: string | RegExp, role: "link" | "button" = "link"): Promise<void> => {
    const target = page.getByRole("main").getByRole(role, { name }).first();
    await target.focus();
    await page.keyboard.press("Enter");
  };
  const found: { readonly place: string; readonly overPx: number }[] = [];
  const look = async (): Promise<void> => {
    const overPx = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    if (overPx > 0) found.push({ place: page.url(), overPx });
  };
  await press(/^owl-/);
  for (const [tab, text] of [
    ["Terminal", "Your shell"],
    ["Code", "No code was run here yet."],
    ["Browser", "No page is open."],
    ["Files", "Upload"],
    ["Changes", /No file is other|changed/],
    ["Processes", /Command|No process/],
    ["Network", "has tried to reach the network"],
  ] as const) {
    await press(tab);
    await anna.shows(text);
    await look();
  }
  await anna.open("/ledger?tool=shell_exec");
  await press(/shell_exec/);
  await anna.shows("Place in the chain");
  await look();
  await anna.open("/tools");
  await press("sandbox_list");
  await anna.shows("Try it");
  await look();
  await press("Call", "button");
  await page.getByRole("group", { name: "Content 1" }).waitFor();
  await look();
  expect(found).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 900 });
  await call(ada, "sandbox_destroy", { session_id: id });
});

test("the theme is the system's until one is chosen, which is kept", async () => {
  const { page } = bob;
  const shade = (): Promise<string> => page.evaluate<string>("getComputedStyle(document.documentElement).colorScheme");
  expect(await shade()).toBe("light dark");
  await page.getByLabel("Theme").selectOption("light");
  expect(await shade()).toBe("light");
  await page.reload();
  await bob.shows("Live");
  expect(await shade()).toBe("light");
  await page.getByLabel("Theme").selectOption("system");
});
