import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, goto, HOME, pixel, refOf, snapshot } from "./browser-site.ts";
import { call } from "./sandbox-client.ts";

let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
});

test("fields are described with their labels, values and states, and a password is never shown", async () => {
  await goto(client, "/form.html");
  const { elements } = await snapshot(client);
  expect(elements.split("\n").map((line) => line.replace(/^\[ref_\d+\] /, ""))).toEqual([
    'textbox "Email" required',
    'textbox "Password" value of 7 characters',
    'searchbox "Search here"',
    'textbox "Notes" value="old text"',
    'combobox "Country" value="France" options: Spain, France',
    'checkbox "I agree" unchecked',
    'radio "Small" checked',
    'slider "Volume" value="30"',
    'button "Send"',
    'button "Never" disabled',
    'textbox "Editor"',
  ]);
});

test("shadow trees are read and used like the rest of the page", async () => {
  await goto(client, "/shadow.html");
  const page = await snapshot(client);
  expect(page.text).toContain("## Slotted name\nInside the shadow\n");
  await call(client, "browser_click", { selector: refOf(page, '"Shadow button"') });
  expect((await snapshot(client)).text).toContain("Shadow was clicked");
});

test("frames of the same and of another origin are read where they stand, and used", async () => {
  await goto(client, "/frames.html");
  const page = await snapshot(client);
  expect(page.text.replaceAll(/\[ref_\d+\]/g, "[ref]").split("\n")).toEqual([
    "Before the frames",
    "[ref] frame:",
    "  Inside a frame",
    "  [ref] Inner button",
    "[ref] frame:",
    "  Inside a frame",
    "  [ref] Inner button",
    "After the frames",
  ]);
  const refs = [...page.elements.matchAll(/\[(ref_\d+)\] button/g)].map(([, ref]) => ref);
  for (const selector of refs) await call(client, "browser_click", { selector });
  const { text } = await snapshot(client);
  expect(text).toContain("Clicked in same");
  expect(text).toContain("Clicked in other");
});

test("text that nobody sees stands at the end and is marked, whatever the page does to hide it or to fool scripts", async () => {
  await goto(client, "/hidden.html");
  const lines = (await snapshot(client)).text.split("\n");
  const hidden = lines.filter((line) => line.startsWith("[hidden] "));
  const numbers =
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen".split(
      " ",
    );
  expect(new Set(hidden.map((line) => /secret (\w+)/.exec(line)?.[1]))).toEqual(new Set(numbers));
  const shown = lines.slice(0, lines.length - hidden.length).join("\n");
  expect(shown).toContain("What people see");
  for (const how of ["white on black", "filled", "painted", "cut", "fixed"]) expect(shown).toContain(`${how} is seen`);
  expect(shown).not.toContain("secret");
});

test("a page of 5,000 elements comes in parts that together have every row and every button, once", async () => {
  await goto(client, "/table?rows=1000");
  const parts = [await snapshot(client)];
  for (let cursor = parts[0]?.cursor; cursor !== undefined; cursor = parts.at(-1)?.cursor)
    parts.push(await snapshot(client, { cursor }));
  expect(parts.length).toBeGreaterThan(3);
  for (const part of parts) expect(JSON.stringify([part.text, part.elements]).length).toBeLessThanOrEqual(20_100);
  const text = parts.map((part) => part.text).join("\n");
  const elements = parts.flatMap((part) => part.elements.split("\n"));
  expect(new Set(elements).size).toBe(2000);
  for (let row = 1; row <= 1000; row += 1) {
    expect(text).toMatch(
      new RegExp(
        `^${row} \\| Customer ${row} \\| \\d+\\.00 \\| \\[ref_\\d+\\] Open \\| \\[ref_\\d+\\] Delete ${row}$`,
        "m",
      ),
    );
  }
});

test("[002-snapshot] maxTextLen and max_text_len bound a snapshot", async () => {
  for (const name of ["maxTextLen", "max_text_len"]) {
    const { text, elements, cursor } = await snapshot(client, { [name]: 500 });
    expect(text.length + elements.length).toBeLessThanOrEqual(500);
    expect(cursor).toMatch(/^\d+:\d+$/);
  }
});

test("an element keeps its ref until the page changes, and a stale ref says so", async () => {
  await goto(client, "/trouble.html");
  const page = await snapshot(client);
  const selector = refOf(page, '"Gone"');
  expect(refOf(await snapshot(client), '"Gone"')).toBe(selector);
  await call(client, "browser_click", { selector });
  for (const path of [undefined, "/index.html"]) {
    if (path !== undefined) await goto(client, path);
    expect((await call(client, "browser_click", { selector })).content[0]?.text).toContain(
      `browser_click failed: element not found (selector="${selector}"): the page has changed since the snapshot that named it\nhint: call browser_snapshot again and use one of the returned refs\n`,
    );
  }
});

test("every script is read as it is written", async () => {
  await goto(client, "/unicode.html");
  const { title, text, elements } = await snapshot(client);
  expect(title).toBe("Ünïcødé 你好");
  expect(text.split("\n").map((line) => line.replace(/\[ref_\d+\] /, ""))).toEqual([
    "# 你好，世界 🌍",
    "مرحبا بالعالم",
    "Отправить 🚀",
    "zero width and soft hyphen",
    "def größe():",
    "    return 1",
  ]);
  expect(elements).toContain('button "Отправить 🚀"');
});

test("a picture of the whole page is written in full and returned scaled down, one of an element has that alone", async () => {
  await goto(client, "/canvas.html");
  const whole = await call(client, "browser_screenshot", { full_page: true });
  expect(whole.structuredContent).toMatchObject({ path: "screenshots/screenshot-1.png", height: 3000 });
  expect(await pixel(client, "screenshots/screenshot-1.png", [200, 2050])).toBe("0,255,0");
  expect(await pixel(client, "screenshots/screenshot-1.png", [50, 2050])).toBe("0,0,255");
  const { content } = whole;
  await call(client, "file_write", { path: "small.png", content: content[1]?.data, encoding: "base64" });
  expect(await pixel(client, "small.png", [105, 1072])).toBe("0,255,0");
  const low = await call(client, "browser_screenshot", { selector: "#low", path: "low.jpg" });
  expect(low.structuredContent).toMatchObject({ width: 200, height: 100 });
  expect(low.content[1]).toMatchObject({ mimeType: "image/jpeg" });
  expect(await pixel(client, "low.jpg", [100, 50])).toMatch(/^\d,25[0-9],\d$/);
});

test("a file of the workspace opens as a page", async () => {
  await call(client, "file_write", { path: "own/page.html", content: "<title>Own</title><p>From a file</p>" });
  await call(client, "browser_goto", { url: "file:///workspace/own/page.html" });
  expect(await snapshot(client)).toMatchObject({ title: "Own", text: "From a file" });
});

test("an address without a scheme is completed", async () => {
  const { structuredContent } = await call(client, "browser_goto", { url: "localhost:8000/index.html" });
  expect(structuredContent).toMatchObject({ url: `${HOME}/index.html` });
});
