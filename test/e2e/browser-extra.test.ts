import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, goto, HOME, refOf, snapshot } from "./browser-site.ts";
import { call } from "./sandbox-client.ts";

let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
});

test("back, forward and reload", async () => {
  await goto(client, "/index.html");
  await goto(client, "/form.html");
  const go = async (action: string): Promise<unknown> =>
    (await call(client, "browser_history", { action })).structuredContent?.["title"];
  expect(await go("back")).toBe("Front page");
  expect(await go("forward")).toBe("Form");
  expect(await go("reload")).toBe("Form");
  await call(client, "browser_tabs", { action: "open" });
  expect((await call(client, "browser_history", { action: "forward" })).content[0]?.text).toContain(
    "there is no page to go forward to",
  );
  await call(client, "browser_tabs", { action: "close" });
});

test("keys, options and a pointer", async () => {
  await goto(client, "/form.html");
  const page = await snapshot(client);
  await call(client, "browser_select", { selector: refOf(page, '"Country"'), values: ["Spain"] });
  await call(client, "browser_press", { selector: refOf(page, '"I agree"'), key: "Space" });
  await call(client, "browser_hover", { selector: refOf(page, '"Send"') });
  const { elements } = await snapshot(client);
  expect(elements).toContain('combobox "Country" value="Spain"');
  expect(elements).toContain('checkbox "I agree" checked');
  const none = await call(client, "browser_select", { selector: "select", values: ["Mars"], timeout_seconds: 5 });
  expect(none.content[0]?.text).toContain("there is no such option");
  expect((await call(client, "browser_press", { key: "Nonsense" })).content[0]?.text).toContain(
    "there is no key Nonsense",
  );
});

test("scrolling to the end brings more of an endless page", async () => {
  await goto(client, "/endless.html");
  expect((await snapshot(client)).text).not.toContain("Item 21");
  await call(client, "browser_scroll", { to: "bottom" });
  await call(client, "browser_wait", { text: "Item 21" });
  expect((await snapshot(client)).text).toContain("Item 40");
});

test("waiting for a text that comes later, and for one that never does", async () => {
  await goto(client, "/spa.html");
  await call(client, "browser_click", { selector: "#later" });
  expect((await call(client, "browser_wait", { text: "Late view" })).isError).toBeUndefined();
  expect((await call(client, "browser_wait", { text: "Start view", state: "gone" })).isError).toBeUndefined();
  const late = await call(client, "browser_wait", { text: "Never said", timeout_seconds: 0.5 });
  expect(late.content[0]?.text).toContain('the text "Never said" did not appear in 0.5 s');
});

test("texts in frames are waited for, until all of them are gone", async () => {
  await goto(client, "/frames.html");
  expect((await call(client, "browser_wait", { text: "Inside a frame" })).isError).toBeUndefined();
  const still = await call(client, "browser_wait", { text: "Inside a frame", state: "gone", timeout_seconds: 1 });
  expect(still.content[0]?.text).toContain('the text "Inside a frame" is still there in 1 s');
  const run = async (expression: string): Promise<void> =>
    void (await call(client, "browser_evaluate", { expression }));
  await run("void setTimeout(() => document.querySelectorAll('iframe').forEach((frame) => frame.remove()), 500)");
  expect((await call(client, "browser_wait", { text: "Inside a frame", state: "gone" })).isError).toBeUndefined();
  const add = "const frame = document.createElement('iframe'); frame.src = 'http://127.0.0.1:8001/frame-inner.html'";
  await run(`void setTimeout(() => { ${add}; document.body.append(frame); }, 500)`);
  expect((await call(client, "browser_wait", { text: "Inside a frame" })).isError).toBeUndefined();
});

test("a text in a frame that nobody sees does not count", async () => {
  await goto(client, "/frames.html");
  const hide = "void document.querySelectorAll('iframe').forEach((frame) => (frame.style.visibility = 'hidden'))";
  await call(client, "browser_evaluate", { expression: hide });
  expect((await call(client, "browser_wait", { text: "Inside a frame", state: "gone" })).isError).toBeUndefined();
});

test("a value that has no form in JSON is the script's fault, not the browser's", async () => {
  await goto(client, "/index.html");
  for (const expression of ["10n", "(() => { const a = {}; a.a = a; return a; })()"]) {
    const failed = await call(client, "browser_evaluate", { expression });
    const [head, hint] = failed.content[0]?.text?.split("\n") ?? [];
    expect(head).toContain("browser_evaluate failed: the value has no form in JSON");
    expect(hint).toContain("String(");
  }
  expect((await snapshot(client)).title).toBe("Front page");
});

test("scripts run in the page, and their faults are told", async () => {
  await goto(client, "/index.html");
  const value = async (expression: string): Promise<unknown> =>
    (await call(client, "browser_evaluate", { expression })).structuredContent?.["value"];
  expect(await value("Promise.resolve({ title: document.title, none: typeof require })")).toBe(
    '{"title":"Front page","none":"undefined"}',
  );
  expect((await call(client, "browser_evaluate", { expression: "nothing.here" })).content[0]?.text).toContain(
    "nothing is not defined",
  );
  const hung = await call(client, "browser_evaluate", { expression: "new Promise(() => {})", timeout_seconds: 1 });
  expect(hung.content[0]?.text).toContain("the page did not do it in time");
});

test("the console and requests that failed", async () => {
  await goto(client, "/trouble.html");
  await call(client, "browser_click", { selector: "#log" });
  const entries = async (name: string): Promise<string> =>
    JSON.stringify((await call(client, name)).structuredContent?.["entries"]);
  expect(await entries("browser_console")).toMatch(/log: hello from the page.*error: it broke/);
  await expect.poll(() => entries("browser_requests")).toContain(`GET ${HOME}/status?code=500: 500`);
});

test("tabs are opened, chosen and closed", async () => {
  await goto(client, "/index.html");
  const opened = await call(client, "browser_tabs", { action: "open" });
  const tabs = opened.structuredContent?.["tabs"] as { tab: number }[];
  expect(tabs).toHaveLength(2);
  const back = await call(client, "browser_tabs", { action: "select", tab: tabs[0]?.tab });
  expect(back.structuredContent).toMatchObject({ title: "Front page" });
  expect((await call(client, "browser_tabs", { action: "select", tab: 999 })).content[0]?.text).toContain(
    "there is no tab 999",
  );
  await call(client, "browser_tabs", { action: "close", tab: tabs[1]?.tab });
  expect((await call(client, "browser_tabs")).structuredContent?.["tabs"]).toBeUndefined();
});

test("a page as PDF, and files into a file field", async () => {
  await goto(client, "/upload.html");
  await call(client, "file_write", { path: "one.txt", content: "first" });
  await call(client, "file_write", { path: "two.txt", content: "second" });
  await call(client, "browser_upload", { selector: "input", paths: ["one.txt", "/workspace/two.txt"] });
  await call(client, "browser_wait", { text: "one.txt=first two.txt=second" });
  expect(
    (await call(client, "browser_upload", { selector: "input", paths: ["/etc/passwd"] })).content[0]?.text,
  ).toContain("outside the workspace");
  expect((await call(client, "browser_pdf", { path: "out/page.pdf" })).isError).toBeUndefined();
  const read = await call(client, "file_read", { path: "out/page.pdf", encoding: "latin1", length: 5 });
  expect(read.structuredContent?.["content"]).toBe("%PDF-");
});
