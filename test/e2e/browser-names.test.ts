import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, goto, HOME, snapshot } from "./browser-site.ts";
import { call } from "./sandbox-client.ts";

const PAGES = readdirSync(resolve(import.meta.dirname, "../fixtures/browser-site"))
  // Frames are trees of their own, and the hidden ones are about what the two see differently.
  .filter((name) => name.endsWith(".html") && name !== "frames.html" && !name.startsWith("hidden"));
const CHROMIUM = "$(ls /usr/lib/chromium/chromium /usr/lib/chromium-browser/chromium-browser 2> /dev/null | head -1)";

/** The browser's words for what a snapshot calls otherwise. */
const ROLES: Readonly<Record<string, string>> = {
  ColorWell: "color field",
  DisclosureTriangle: "button",
  DisclosureTriangleGrouped: "button",
};
const WIDGETS =
  "button link checkbox radio switch tab menuitem textbox searchbox combobox listbox slider spinbutton".split(" ");

/** Plain Playwright asks the browser for its own tree of each page: what a screen reader would get. */
const PROGRAM = `
const guest = require("fs").readFileSync("/proc/1/cmdline", "utf8").split("\\0").find((part) => part.endsWith("guest.mjs"));
const { chromium } = require(require("path").join(require("path").dirname(guest), "node_modules/playwright-core"));
(async () => {
  const browser = await chromium.launch({ executablePath: process.argv[2], chromiumSandbox: false });
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  const cdp = await page.context().newCDPSession(page);
  const roles = ${JSON.stringify([...WIDGETS, ...Object.keys(ROLES)])};
  const trees = {};
  for (const name of JSON.parse(process.argv[3])) {
    await page.goto("${HOME}/" + name);
    const { nodes } = await cdp.send("Accessibility.getFullAXTree");
    trees[name] = nodes
      .filter(({ ignored, role }) => !ignored && roles.includes(role?.value))
      .map(({ role, name }) => [role.value, (name?.value ?? "").replaceAll(/\\s+/g, " ").trim()]);
  }
  await browser.close();
  console.log(JSON.stringify(trees));
})();`;

/** Rich text is a generic thing to the browser, and so is what only a script makes useful. */
const NOT_IN_THE_TREE = /^\[ref_\d+\] (?:textbox "Editor"|clickable )/;

let client: Client;
let trees: Record<string, [role: string, name: string][]> = {};

beforeAll(async () => {
  client = await connectToSite("stdio", { sandbox: { flavor: "medium" } });
  await call(client, "file_write", { path: "tree.cjs", content: PROGRAM });
  const command = `node tree.cjs ${CHROMIUM} '${JSON.stringify(PAGES)}'`;
  const ran = await call(client, "shell_exec", { command, timeout_seconds: 120 });
  const { stdout, stderr } = ran.structuredContent as { stdout: string; stderr: string };
  if (stderr !== "") throw new Error(stderr);
  trees = JSON.parse(stdout) as typeof trees;
}, 180_000);

test.each(PAGES)("%s: roles and names are those of the browser's own accessibility tree", async (name) => {
  await goto(client, `/${name}`);
  const { elements } = await snapshot(client);
  const ours = elements.split("\n").filter((line) => line !== "" && !NOT_IN_THE_TREE.test(line));
  const theirs = (trees[name] ?? []).map(([role, said]) => `${ROLES[role] ?? role} "${said}"`);
  expect(ours.map((line) => roleAndName(line)).toSorted()).toEqual(theirs.toSorted());
});

/** `[ref_3] textbox "Email" required` is a textbox called Email; a field for files is a button to the browser. */
function roleAndName(line: string): string {
  const [, role = line, name = ""] = /^\[ref_\d+\] ([a-z]+(?: field)?)(?: "(.*?)")?(?: |$)/.exec(line) ?? [];
  return `${role === "file field" ? "button" : role} "${name}"`;
}
