import { readFile } from "node:fs/promises";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { DashboardServer, HOSTILE, Operator } from "./page-lab.ts";

let server: DashboardServer;
let ada: Client;
let anna: Operator;
/** What opens the sandbox to its client, and what it is called on the page. */
let sandbox = "";
let shown = "";

beforeAll(async () => {
  server = await new DashboardServer({ sandbox: { network: { allow: ["allowed.example"] } } }).start();
  ada = await server.client("ada");
  anna = await Operator.signIn(server, { name: "anna" });
});
// Each for itself: what one complains about must not leave the other behind.
afterAll(() => server.stop());
afterAll(() => anna.leave());

beforeEach(async () => {
  const created = await call(ada, "sandbox_create");
  sandbox = String(created.structuredContent?.["session_id"]);
  await anna.open("");
  shown = await anna.page.getByRole("link", { name: /^owl-/ }).innerText();
});
afterEach(async () => {
  await call(ada, "sandbox_destroy", { session_id: sandbox }).catch(() => undefined);
  await anna.open("");
  await anna.shows("No sandbox is in use.");
  anna.isContent();
});

const run = (command: string): Promise<unknown> => call(ada, "shell_exec", { session_id: sandbox, command });
const screen = (): Promise<string> => anna.page.getByRole("group", { name: "Output of shell and code" }).innerText();

test("what shell and code print appears as it comes", async () => {
  await anna.open(`/sandboxes/${shown}`);
  await anna.shows("Output");
  const colored = String.raw`\033[1mbold\033[0m\033[38;2;9;9;9mdark\033[0m`;
  const running = run(`printf '${colored}\\n'; echo fi''rst; until [ -e stop ]; do sleep 0.05; done; echo la''st >&2`);
  await expect.poll(screen).toContain("first");
  expect(await screen()).toContain("bolddark");
  expect(await screen()).not.toContain("last");
  await run("touch stop");
  await running;
  await expect.poll(screen).toContain("last");
  await anna.page.getByLabel("Plain text").check();
  await anna.page.getByRole("log").getByText("bolddark").waitFor();
  await anna.page.getByLabel("Plain text").uncheck();
  await expect.poll(screen).toContain("first");
});

test("code is shown with what it printed, its result and its error", async () => {
  await anna.open(`/sandboxes/${shown}/cells`);
  await anna.shows("No code was run here yet.");
  await call(ada, "code_run", { session_id: sandbox, code: `print("printed " + "this")\n6 * 7` });
  const cell = anna.page.getByRole("listitem").filter({ hasText: "6 * 7" });
  await cell.getByRole("group", { name: "printed" }).getByText("printed this").waitFor();
  await cell.getByRole("group", { name: "result" }).getByText("42").waitFor();
  await call(ada, "code_run", { session_id: sandbox, code: "1 / 0" });
  await anna.page.getByRole("group", { name: "error" }).getByText("ZeroDivisionError").waitFor();
  expect(await anna.page.getByRole("article").count()).toBe(2);
});

const PLOT = `import matplotlib.pyplot as plt
axes = plt.figure(figsize=(3, 2)).add_axes([0, 0, 1, 1])
axes.axvspan(0, 1, color="#c01020")
axes.axvspan(1, 2, color="#1020c0")
axes.set_xlim(0, 2)
axes.set_axis_off()
plt.show()`;

/** Two places of the first picture of the page, as a browser draws them. */
const PLOT_COLORS = `(async () => {
  const image = document.querySelector("article.cell img");
  await image.decode();
  const { naturalWidth: width, naturalHeight: height } = image;
  const canvas = new OffscreenCanvas(width, height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const line = canvas.getImageData(0, Math.floor(height / 2), width, 1).data;
  const colorAt = (x) => [...line.slice(4 * Math.floor(width * x)).slice(0, 4)];
  return { isThere: width > 0 && height > 0, isShown: image.clientWidth > 0, left: colorAt(0.25), right: colorAt(0.75) };
})()`;

test("a plot of code is drawn as it is", async () => {
  await anna.open(`/sandboxes/${shown}/cells`);
  await anna.shows("No code was run here yet.");
  await call(ada, "code_run", { session_id: sandbox, code: PLOT });
  await anna.page.getByRole("img", { name: "Picture 1 of this code" }).waitFor();
  expect(await anna.page.evaluate(PLOT_COLORS)).toEqual({
    isThere: true,
    isShown: true,
    left: [0xc0, 0x10, 0x20, 255],
    right: [0x10, 0x20, 0xc0, 255],
  });
  await anna.page.reload();
  await anna.page.getByRole("img", { name: "Picture 1 of this code" }).waitFor();
  expect(await anna.obstacles()).toEqual([]);
});

test("files are looked at, downloaded and uploaded, and what changed is told", async () => {
  await call(ada, "shell_exec", { session_id: sandbox, command: "true" });
  await anna.open(`/sandboxes/${shown}`);
  await anna.page.getByRole("link", { name: "all calls" }).click();
  await anna.page.getByRole("table").getByRole("link").first().click();
  await anna.page.getByRole("link", { name: shown }).waitFor();
  await run("mkdir -p src && printf 'one\\ntwo\\n' > src/a.txt && head -c 100 /dev/zero > src/zero.bin");
  await anna.open(`/sandboxes/${shown}/files`);
  await anna.page.getByRole("button", { name: "src" }).click();
  await anna.page.getByRole("button", { name: /a\.txt/ }).click();
  await anna.page.waitForURL(/path=/);
  await anna.page
    .getByRole("group", { name: /Content of/ })
    .getByText("two")
    .waitFor();
  const download = anna.page.waitForEvent("download");
  await anna.page.getByRole("link", { name: "Download" }).click();
  expect(await readFile(await (await download).path(), "utf8")).toBe("one\ntwo\n");
  await anna.page.getByRole("button", { name: /zero\.bin/ }).click();
  await anna.shows("This file is no text.");
  await anna.page
    .getByLabel(/Upload into/)
    .setInputFiles({ name: "up.txt", mimeType: "text/plain", buffer: Buffer.from(HOSTILE) });
  await anna.page.getByRole("button", { name: "Upload", exact: true }).click();
  await anna.page.getByRole("button", { name: /up\.txt/ }).click();
  await anna.page
    .getByRole("group", { name: /Content of/ })
    .getByText("globalThis.owned")
    .waitFor();
  expect(
    (await call(ada, "shell_exec", { session_id: sandbox, command: "cat src/up.txt up.txt" })).content[0]?.text,
  ).toContain("globalThis");
  await anna.open(`/sandboxes/${shown}/changes`);
  await anna.shows("+ two");
  expect(await anna.isOwned()).toBe(false);
});

test("attempts at the network are told with the rule", async () => {
  await anna.open(`/sandboxes/${shown}/network`);
  await anna.shows("has tried to reach the network");
  await run("curl -s -m 5 http://nowhere.example/ || true");
  const row = anna.page.getByRole("row", { name: /nowhere\.example/ }).first();
  await row.waitFor();
  expect(await row.innerText()).toMatch(/deny\s+nowhere\.example\s+80\s+\S+/);
});

test("the processor's time is told while something uses it, and no longer", async () => {
  const running = run("until [ -e stop ]; do :; done");
  await anna.open(`/sandboxes/${shown}`);
  const percent = async (): Promise<number> => {
    const text = await anna.page.locator("dt", { hasText: "CPU and memory" }).locator("+ dd").innerText();
    return Number(/^(\d+) %/.exec(text)?.[1] ?? Number.NaN);
  };
  // One core at most, and on a busy machine a part of one.
  await expect.poll(percent, { timeout: 20_000 }).toBeGreaterThanOrEqual(10);
  expect(await percent()).toBeLessThanOrEqual(150);
  await run("touch stop");
  await running;
  await expect.poll(percent, { timeout: 20_000 }).toBeLessThanOrEqual(2);
});

test("processes are listed and ended", async () => {
  const running = run("sleep 4321");
  await anna.open(`/sandboxes/${shown}/processes`);
  const row = anna.page.getByRole("row", { name: /sleep 4321/ }).last();
  await row.getByRole("button", { name: /^Kill/ }).click();
  await anna.page.getByRole("dialog").getByRole("button", { name: /^Kill/ }).click();
  await running;
  await row.waitFor({ state: "detached" });
  expect(await anna.page.getByRole("row", { name: /sleep 4321/ }).count()).toBe(0);
});

test("whoever takes a sandbox over types in a shell of their own, and the client waits until it is given back", async () => {
  await anna.open(`/sandboxes/${shown}`);
  await anna.page.getByRole("button", { name: "Take over" }).click();
  const shell = anna.page.getByRole("group", { name: "Your shell in the sandbox" });
  await shell.click();
  await expect.poll(() => shell.innerText()).toMatch(/[$#] /);
  await anna.page.keyboard.type("echo $((6 * 7))-was-here > note.txt; cat note.txt\n");
  await expect.poll(() => shell.innerText()).toContain("42-was-here");
  await expect(run("echo mine").then((answer) => JSON.stringify(answer))).resolves.toMatch(/taken|operator/);
  expect(await anna.obstacles()).toEqual([]);
  await anna.page.reload();
  await expect.poll(() => shell.innerText()).toContain("42-was-here");
  await anna.page.getByRole("button", { name: "Give back" }).click();
  await anna.page.getByRole("button", { name: "Take over" }).waitFor();
  expect(JSON.stringify(await run("cat note.txt"))).toContain("42-was-here");
  await anna.open("/ledger?client=anna&kind=admin");
  await anna.shows(/take/);
});

/** The name of the part of the page that has the keys. */
const KEYS_ARE_IN = `(() => {
  const { activeElement } = document;
  const part = activeElement.closest(".screen") ?? activeElement.closest("button, label, a") ?? activeElement;
  return part.getAttribute("aria-label") ?? part.textContent.trim();
})()`;

test("whoever has only keys gets into what is printed and into the shell, and out of both", async () => {
  const { keyboard } = anna.page;
  const keysAreIn = (): Promise<unknown> => anna.page.evaluate(KEYS_ARE_IN);
  await anna.open(`/sandboxes/${shown}`);
  await anna.page.getByRole("button", { name: "Take over" }).click();
  const shell = anna.page.getByRole("group", { name: "Your shell in the sandbox" });
  await expect.poll(() => shell.innerText()).toMatch(/[$#] /);
  await anna.page.getByLabel("Plain text").focus();
  const steps = ["Plain text"];
  for (let step = 0; step < 3; step += 1) {
    await keyboard.press("Tab");
    steps.push(String(await keysAreIn()));
  }
  expect(steps).toEqual(["Plain text", "Output of shell and code", "Give back", "Your shell in the sandbox"]);
  // A Tab is the shell's own, for names that it completes.
  await keyboard.type("echo key''board > by-tab.txt\n");
  await keyboard.type("cat by-");
  await keyboard.press("Tab");
  await keyboard.press("Enter");
  await expect.poll(() => shell.innerText()).toContain("keyboard");
  expect(await keysAreIn()).toBe("Your shell in the sandbox");
  await keyboard.press("Shift+Tab");
  expect(await keysAreIn()).toBe("Give back");
  await keyboard.press("Shift+Tab");
  expect(await keysAreIn()).toBe("Output of shell and code");
  await keyboard.press("Shift+Tab");
  expect(await keysAreIn()).toBe("Plain text");
  expect(await anna.obstacles()).toEqual([]);
  await anna.page.getByRole("button", { name: "Give back" }).click();
  await anna.page.getByRole("button", { name: "Take over" }).waitFor();
});

test("a sandbox is extended and stopped, and what it printed can still be read", async () => {
  await anna.open(`/sandboxes/${shown}`);
  await anna.page.getByRole("button", { name: "Extend by 30 min" }).click();
  await anna.shows(/ends in (5\d min|1 h)/);
  const running = run("sleep 300");
  await anna.shows("shell_exec");
  await anna.page.getByRole("button", { name: "Stop", exact: true }).click();
  await anna.page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await running.catch(() => undefined);
  await anna.shows("This sandbox is no longer alive.");
  expect(await screen()).toContain("sleep 300");
  expect(await anna.page.getByRole("button", { name: "Destroy" }).count()).toBe(0);
});

test("a sandbox is destroyed, and its address says so", async () => {
  await anna.open(`/sandboxes/${shown}`);
  await anna.page.getByRole("button", { name: "Destroy" }).click();
  await anna.page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
  await anna.shows("No sandbox is in use.");
  await anna.page.goBack();
  await anna.shows("This sandbox is no longer alive.");
  expect(await anna.page.getByRole("button", { name: "Destroy" }).count()).toBe(0);
});

/** How many requests of this kind were under way at the same time, at most: those that are may overtake each other. */
async function countAtOnce(pattern: string): Promise<() => number> {
  let [now, most] = [0, 0];
  await anna.page.route(pattern, async (route) => {
    now += 1;
    most = Math.max(most, now);
    const response = await route.fetch();
    now -= 1;
    await route.fulfill({ response });
  });
  return () => most;
}

test("the client's browser is seen as it is, and whoever took the sandbox over clicks and types in it", async () => {
  const html = `<title>${HOSTILE.replaceAll("<", "&lt;")}</title><body style="margin:0"><button style="position:fixed;inset:0" onclick="this.remove(); field.focus(); document.title='clicked'">press</button><input id="field" oninput="document.title='typed '+value">`;
  const encoded = Buffer.from(html).toString("base64");
  await run(`echo ${encoded} | base64 -d > page.html`);
  await anna.open(`/sandboxes/${shown}/browser`);
  await anna.shows("No page is open.");
  await call(ada, "browser_goto", { session_id: sandbox, url: "file:///workspace/page.html" });
  const title = anna.page.getByRole("heading", { level: 2 });
  await expect.poll(() => title.innerText(), { timeout: 20_000 }).toContain("<script>globalThis.owned=1</script>");
  await anna.page.getByRole("img", { name: "What the browser shows now" }).waitFor();
  expect(await anna.isOwned()).toBe(false);
  expect(await anna.obstacles()).toEqual([]);
  await anna.page.getByRole("button", { name: "Take over" }).click();
  await anna.page.getByRole("button", { name: "Give back" }).waitFor();
  const page = anna.page.getByRole("application");
  await page.click();
  await expect.poll(() => title.innerText(), { timeout: 20_000 }).toBe("clicked");
  const most = await countAtOnce("**/browser/input");
  // Faster than requests come back: each letter must stay where it was typed.
  await anna.page.keyboard.type("the quick brown fox");
  // None of these is a shortcut of the dashboard while the page has the keys.
  await anna.page.keyboard.type("Pg l?/");
  expect(await anna.page.getByRole("dialog").count()).toBe(0);
  await anna.page.getByLabel("Type a text into the page").fill(" jumps");
  await anna.page.getByRole("button", { name: "Type", exact: true }).click();
  await expect.poll(() => title.innerText(), { timeout: 20_000 }).toBe("typed the quick brown foxPg l?/ jumps");
  expect(most()).toBe(1);
  await anna.page.unrouteAll({ behavior: "wait" });
  expect(await anna.obstacles()).toEqual([]);
  await anna.page.getByRole("button", { name: "Destroy" }).click();
  await anna.page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
  await anna.shows("No sandbox is in use.");
});
