import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { connectToSite } from "../e2e/browser-site.ts";
import { type Called, call } from "../e2e/sandbox-client.ts";
import { until } from "../integration/harness.ts";

/** A page must not decide where the agent types next. */
let client: Client;

const TRAP = `<title>Trap</title><input id="password">`;
const PAGES: Readonly<Record<string, string>> = {
  "trap.html": TRAP,
  "late.html": `<title>Late</title><input id="password"><script>setTimeout(() => open("trap.html"), 300)</script>`,
  "typed.html": `<title>Typed</title><input id="password" oninput="window.open('trap.html')"><input id="other">`,
  "many.html": `<title>Many</title><input id="password"><script>setTimeout(() => { for (let n = 0; n < 25; n++) window.open("about:blank") }, 300)</script>`,
  "two.html": `<title>Two</title><button onclick="window.open('link.html'); window.open('trap.html')">Open</button>`,
  "link.html": `<title>Link</title><a href="trap.html" target="_blank">Out</a><button onclick="window.open('trap.html')">Open</button>`,
  "leads.html": `<title>Leads</title><button onclick="window.open('closes.html')">Open</button>`,
  "closes.html": `<title>Closes</title><script>window.open("trap.html"); setTimeout(() => window.close(), 500)</script>`,
};

beforeAll(async () => {
  client = await connectToSite("stdio");
  for (const [path, content] of Object.entries(PAGES)) await call(client, "file_write", { path, content });
});

beforeEach(() => call(client, "browser_tabs", { action: "open" }).then(closeOthers));

async function goto(page: string): Promise<Called> {
  return call(client, "browser_goto", { url: `file:///workspace/${page}` });
}

async function titleOf(expression = "document.title"): Promise<unknown> {
  const result = await call(client, "browser_evaluate", { expression });
  return result.structuredContent?.["value"] ?? result.content[0]?.text;
}

/** Asks until a popup was told of, and says what was told. */
async function untilTold(first: Called, text: string): Promise<string> {
  let told = JSON.stringify(first.structuredContent?.["events"] ?? []);
  await until(
    async () => {
      const { structuredContent } = await call(client, "browser_tabs", { action: "list" });
      told += JSON.stringify(structuredContent?.["events"] ?? []);
      return told;
    },
    (all) => all.includes(text),
  );
  return told;
}

async function closeOthers(): Promise<void> {
  const { structuredContent } = await call(client, "browser_tabs", { action: "list" });
  const tabs = (structuredContent?.["tabs"] ?? []) as { readonly tab: number; readonly is_current: boolean }[];
  for (const { tab, is_current: isCurrent } of tabs)
    if (!isCurrent) await call(client, "browser_tabs", { action: "close", tab });
}

test("a popup that a page opens by itself is told of, and the agent types into its own page", async () => {
  const told = await untilTold(await goto("late.html"), "popup");
  expect(told).toContain("a page opened a popup by itself");
  await call(client, "browser_type", { selector: "#password", text: "mine" });
  expect(await titleOf(`document.title + document.querySelector("#password").value`)).toContain("Latemine");
});

test("a popup that a page opens while the agent types is not typed into", async () => {
  await goto("typed.html");
  const typed = await call(client, "browser_type", { selector: "#password", text: "one" });
  await untilTold(typed, "popup");
  await call(client, "browser_type", { selector: "#password", text: "two" });
  expect(await titleOf()).toContain("Typed");
});

test("many popups close no tab of the agent", async () => {
  const told = await untilTold(await goto("many.html"), "at most 20");
  expect(told).toContain("was closed: there are at most 20");
  expect(await titleOf()).toContain("Many");
});

test("of two tabs that a page opens at a click the first is followed", async () => {
  await goto("two.html");
  await untilTold(await call(client, "browser_click", { selector: "button" }), "popup");
  expect(await titleOf()).toContain("Link");
});

test("a tab that closes itself does not leave the agent in a popup that it has opened", async () => {
  await goto("leads.html");
  const clicked = await call(client, "browser_click", { selector: "button" });
  await untilTold(clicked, "the page closed its tab");
  expect(await titleOf()).toContain("Leads");
});

test.each(["a", "button"])("a tab that the agent opens by a click on %s is followed", async (selector) => {
  await goto("link.html");
  const { structuredContent } = await call(client, "browser_click", { selector });
  expect(structuredContent).toMatchObject({
    title: "Trap",
    events: [expect.stringMatching(/^a new tab opened: tab \d+, which is now the current one/)],
  });
});
