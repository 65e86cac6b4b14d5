import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, goto, HOME } from "../e2e/browser-site.ts";
import { call } from "../e2e/sandbox-client.ts";
import { textOf } from "./sandbox-lab.ts";

// The attacks of browser-attacks, on the same browser in the same sandbox, without our checks around it: each of them succeeds.

const LOOT = "sandbox:x:1000";

const ADDRESSES = [
  "file:///etc/passwd",
  "file:///workspace/../etc/passwd",
  "file://localhost/etc/passwd",
  "view-source:file:///etc/passwd",
  "file:///workspace/frame.html",
  "file:///workspace/refresh.html",
  "file:///workspace/link.txt",
];
/** As the guest finds it. */
const CHROMIUM = "$(ls /usr/lib/chromium/chromium /usr/lib/chromium-browser/chromium-browser 2> /dev/null | head -1)";
const OWN_PAGES = ["chrome://version", `view-source:${HOME}/index.html`];

/** Plain Playwright, as the guest has it: it says what each address shows, and writes where it is told. */
const PROGRAM = `
const guest = require("fs").readFileSync("/proc/1/cmdline", "utf8").split("\\0").find((part) => part.endsWith("guest.mjs"));
const { chromium } = require(require("path").join(require("path").dirname(guest), "node_modules/playwright-core"));
const shown = async (page) => {
  const texts = await Promise.all(page.frames().map((frame) => frame.evaluate("document.body.innerText").catch(String)));
  return page.url() + " " + texts.join(" ");
};
(async () => {
  const browser = await chromium.launch({ executablePath: process.argv[1], chromiumSandbox: false });
  const said = {};
  for (const address of JSON.parse(process.argv[2])) {
    const page = await browser.newPage();
    await page.goto(address);
    await page.waitForFunction(() => document.title !== "Way out").catch(() => {});
    said[address] = await shown(page);
    await page.close();
  }
  const page = await browser.newPage();
  await page.goto("about:blank");
  await page.goto("javascript:document.body.append('ran')").catch(() => {});
  said["javascript:"] = await shown(page);
  await page.screenshot({ path: "out/x.png" });
  const [download] = await Promise.all([page.waitForEvent("download"), page.goto(process.argv[3]).catch(() => {})]);
  await download.saveAs("downloads/" + download.suggestedFilename());
  await browser.close();
  console.log(JSON.stringify(said));
})();
`;

let client: Client;
let said: Record<string, string>;

beforeAll(async () => {
  client = await connectToSite("stdio");
  const pages = {
    frame: `<iframe src="file:///etc/passwd"></iframe>`,
    refresh: `<title>Way out</title><meta http-equiv="refresh" content="0;url=file:///etc/passwd">`,
  };
  for (const [name, content] of Object.entries(pages))
    await call(client, "file_write", { path: `${name}.html`, content });
  await call(client, "file_write", { path: "bare.cjs", content: PROGRAM });
  const links = "ln -s /etc/passwd link.txt; ln -s /tmp out; ln -s /tmp downloads";
  const args = `'${JSON.stringify([...ADDRESSES, ...OWN_PAGES])}' '${HOME}/file?name=loot.csv'`;
  const command = `${links}; node -e "$(cat bare.cjs)" ${CHROMIUM} ${args}`;
  const ran = await call(client, "shell_exec", { command, timeout_seconds: 120 });
  const { stdout, stderr } = ran.structuredContent as { stdout: string; stderr: string };
  if (stderr !== "") throw new Error(stderr);
  said = JSON.parse(stdout) as Record<string, string>;
}, 180_000);

test.each(ADDRESSES)("%s would be read without the check of addresses", (address) => {
  expect(said[address]).toContain(LOOT);
});

test("its own pages and scripts as addresses would be opened without the check of addresses", () => {
  expect(said["chrome://version"]).toContain("Command Line");
  expect(said[`view-source:${HOME}/index.html`]).toContain("<title>Front page</title>");
  expect(said["javascript:"]).toContain("ran");
});

test.each(["x.png", "loot.csv"])("%s would lie outside the workspace without the check of paths", async (name) => {
  expect(textOf(await call(client, "shell_exec", { command: "ls /tmp" }))).toContain(name);
});

test("a page would find a browser that is driven over a port", async () => {
  const flags = "--headless --no-sandbox --user-data-dir=/tmp/other --remote-debugging-port=9222";
  await call(client, "shell_exec", { command: `exec ${CHROMIUM} ${flags} about:blank`, background: true });
  const isUp = "until curl -s -o /dev/null localhost:9222/json/version; do sleep 0.1; done";
  await call(client, "shell_exec", { command: isUp });
  await goto(client, "/index.html");
  const expression = `fetch("http://127.0.0.1:9222/json/version", { mode: "no-cors" }).then((answer) => answer.type)`;
  const found = await call(client, "browser_evaluate", { expression });
  expect(found.structuredContent?.["value"]).toBe('"opaque"');
});
