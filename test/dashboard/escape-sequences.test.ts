import { isDeepStrictEqual } from "node:util";
import type { Client } from "@modelcontextprotocol/client";
import type { Dialog, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { DashboardServer, Operator } from "./page-lab.ts";

let server: DashboardServer;
let ada: Client;
let anna: Operator;
let sandbox = "";
let shown = "";

beforeAll(async () => {
  server = await new DashboardServer().start();
  ada = await server.client("ada");
  sandbox = String((await call(ada, "sandbox_create")).structuredContent?.["session_id"]);
  await run(`echo "printf '${WORDS}'" > words; echo "printf '${ESCAPES.join("")}${WORDS}'" > escapes`);
  anna = await Operator.signIn(server, { name: "anna" });
  await anna.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  shown = await anna.page.getByRole("link", { name: /^owl-/ }).innerText();
});
// Each for itself: what one complains about must not leave the other behind.
afterAll(() => server.stop());
afterAll(() => anna.leave());

const SHOW_MS = 20_000;
const WORDS = String.raw`\033[31mred\033[0m a link\n`;
/** Would do more than print: a title, the clipboard, a notification, another red, another ink, another paper, a link. */
const ESCAPES = [
  "]0;owned",
  "]2;owned",
  "]52;c;b3duZWQ=",
  "]9;owned",
  "]4;1;#0000ff",
  "]10;#00ff00",
  "]11;#ff00ff",
  "]8;;http://127.0.0.1:1/",
].map((sequence) => String.raw`\033${sequence}\007`);

const run = (command: string): Promise<unknown> => call(ada, "shell_exec", { session_id: sandbox, command });

/** What a screen is painted with, and the last of the two words on it. */
const PAINT = `(element) => {
  const paintOf = (found) => {
    const { color, backgroundColor } = getComputedStyle(found);
    return [color, backgroundColor];
  };
  const parts = [...element.querySelectorAll(".xterm-viewport, .xterm-rows, .xterm-scrollable-element")];
  const red = [...element.querySelectorAll(".xterm-rows span")].filter((span) => span.textContent.trim() === "red");
  return { parts: parts.map(paintOf), red: paintOf(red.at(-1)) };
}`;

async function paintOf(screen: Locator): Promise<unknown> {
  const label = await screen.getAttribute("aria-label");
  return await anna.page.evaluate<unknown>(`(${PAINT})(document.querySelector('[aria-label="${label}"]'))`);
}

/** In what is drawn: a screen is told to screen readers beside that. */
async function timesPrinted(screen: Locator): Promise<number> {
  return (await screen.locator(".xterm-rows").innerText()).split(/red\sa\slink/).length - 1;
}

/** Points at the link on a screen and presses it: whatever opens is told. */
async function openedBy(screen: Locator): Promise<readonly string[]> {
  const { page } = anna;
  const opened: string[] = [];
  const onDialog = (dialog: Dialog): void => {
    opened.push(dialog.message());
    void dialog.dismiss();
  };
  const onPage = (popup: Page): void => void opened.push(popup.url());
  page.on("dialog", onDialog);
  page.context().on("page", onPage);
  const box = await screen.locator(".xterm-rows span", { hasText: "link" }).last().boundingBox();
  if (box === null) throw new Error("the link is not on the screen");
  const [x, y] = [box.x + box.width - 4, box.y + box.height / 2];
  for (const back of [20, 10, 0]) await page.mouse.move(x - back, y);
  await page.mouse.click(x, y);
  // What a click does is done when the page has drawn once more.
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))");
  page.off("dialog", onDialog);
  page.context().off("page", onPage);
  return opened;
}

/** What else happens when two words are printed with the escape sequences before them, and then pointed at and pressed. */
async function sideEffects(screen: Locator, runFile: (file: string) => Promise<unknown>): Promise<unknown> {
  await anna.page.evaluate(`navigator.clipboard.writeText("mine")`);
  await runFile("words");
  await expect.poll(() => timesPrinted(screen), { timeout: SHOW_MS }).toBe(1);
  const before = await paintOf(screen);
  await runFile("escapes");
  await expect.poll(() => timesPrinted(screen), { timeout: SHOW_MS }).toBe(2);
  const opened = await openedBy(screen);
  const after = await paintOf(screen);
  return {
    opened,
    repainted: isDeepStrictEqual(before, after) ? "nothing" : after,
    title: await anna.page.title(),
    clipboard: await anna.page.evaluate("navigator.clipboard.readText()"),
    links: await anna.page.locator(".screen a, .screen [href]").count(),
  };
}

const NONE = {
  opened: [],
  repainted: "nothing",
  title: expect.stringMatching(/^Sandbox /),
  clipboard: "mine",
  links: 0,
};

test("what a client prints does no more than print", async () => {
  await anna.open(`/sandboxes/${shown}`);
  const screen = anna.page.getByRole("group", { name: "Output of shell and code" });
  expect(await sideEffects(screen, (file) => run(`sh ${file}`))).toEqual(NONE);
});

test("what a client prints stays below our own lines, whatever screen it asks for", async () => {
  await anna.open(`/sandboxes/${shown}`);
  const screen = anna.page.getByRole("group", { name: "Output of shell and code" });
  const command = String.raw`printf '\033[2J\033[3J\033[H\033[?1049h\033(0\033[1;1r\033[8m\033[9A\033]0;fi%s' rst`;
  await run(command);
  await run("echo sec''ond");
  await expect
    .poll(() => screen.innerText(), { timeout: SHOW_MS })
    .toMatch(/▸ shell_exec by ada\s+\$ echo sec''ond\s+second/);
  const lines = (await screen.innerText()).split("\n").filter((line) => line.includes("▸ shell_exec by ada"));
  expect(lines.length).toBeGreaterThanOrEqual(2);
});

test("what a program prints in an operator's own shell does no more than print", async () => {
  await anna.open(`/sandboxes/${shown}`);
  await anna.page.getByRole("button", { name: "Take over" }).click();
  const screen = anna.page.getByRole("group", { name: "Your shell in the sandbox" });
  await screen.click();
  await expect.poll(() => screen.innerText(), { timeout: SHOW_MS }).toMatch(/[$#] /);
  expect(await sideEffects(screen, (file) => anna.page.keyboard.type(`sh ${file}\n`))).toEqual(NONE);
  await anna.page.getByRole("button", { name: "Give back" }).click();
  await anna.page.getByRole("button", { name: "Take over" }).waitFor();
});
