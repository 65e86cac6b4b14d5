import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, goto, HOME, pixel, refOf, SITE, type Snapshot, snapshot } from "./browser-site.ts";
import { call } from "./sandbox-client.ts";

let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
});

/** All parts of one snapshot. */
async function readParts(args: Record<string, unknown> = {}): Promise<Snapshot[]> {
  const parts = [await snapshot(client, args)];
  for (let cursor = parts[0]?.cursor; cursor !== undefined; cursor = parts.at(-1)?.cursor)
    parts.push(await snapshot(client, { ...args, cursor }));
  return parts;
}

async function open(path: string, content: string): Promise<void> {
  await call(client, "file_write", { path, content });
  await call(client, "browser_goto", { url: `file:///workspace/${path}` });
}

test("an area of a picture is in the snapshot and leads where it points, unless the picture is hidden", async () => {
  const area = (style: string): string =>
    `<img usemap="#m" style="${style}" alt="" width="40" height="40" src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAAC">
     <map name="m"><area href="#reached" alt="Area" shape="rect" coords="0,0,40,40"></map>`;
  await open("area.html", area(""));
  const clicked = await call(client, "browser_click", { selector: refOf(await snapshot(client), 'link "Area"') });
  expect(clicked.structuredContent?.["url"]).toMatch(/#reached$/);
  await open("no-area.html", area("display: none"));
  expect((await snapshot(client)).elements).not.toContain("Area");
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
  const source = readFileSync(join(SITE, "hidden.html"), "utf8");
  const secrets = source.match(/secret [\w ]+/g) ?? [];
  expect(secrets.length).toBeGreaterThan(30);
  expect(hidden.map((line) => /secret [\w ]+/.exec(line)?.[0] ?? line).toSorted()).toEqual(secrets.toSorted());
  const shown = lines.slice(0, lines.length - hidden.length).join("\n");
  expect(shown).toContain("What people see");
  const seen = source.match(/[\w ]+ is seen/g) ?? [];
  expect(seen.filter((words) => !shown.includes(words.trim()))).toEqual([]);
  expect(shown).not.toContain("secret");
});

test("links, buttons, fields, pictures and frames that nobody sees are marked or left out, and what one can scroll to is not", async () => {
  await goto(client, "/hidden-elements.html");
  const { text, elements } = await snapshot(client);
  const shown = text.split("\n").filter((line) => !line.startsWith("[hidden] "));
  expect(shown.filter((line) => line.includes("secret"))).toEqual([]);
  const secrets = elements.split("\n").filter((line) => line.includes("secret"));
  expect(secrets).toHaveLength(12);
  for (const line of secrets) expect(line).toMatch(/ \((?:not visible|text not visible|text partly hidden)\)$/);
  const page = await call(client, "browser_evaluate", { expression: "document.documentElement.outerHTML" });
  const seen = new Set(JSON.stringify(page.structuredContent).match(/[\w ]+ is seen/g));
  expect(seen.size).toBeGreaterThan(10);
  for (const words of seen) expect(shown.join("\n")).toContain(words);
  const lines = elements.split("\n").filter((line) => !line.includes("secret"));
  expect(lines.join("\n")).not.toMatch(/visible|hidden/);
});

test("words that styles put before and after elements are read with them, and those that nobody sees are marked", async () => {
  await goto(client, "/generated.html");
  const { text } = await snapshot(client);
  expect(text.replaceAll(/\[ref_\d+\]/g, "[ref]").split("\n")).toEqual([
    "→ Onwards",
    '“He said "so"”',
    "Price: 12",
    "Icon",
    "Own line Below",
    "beside a picture Text",
    "Bold nested",
    ..."Tip White Off Tiny Gone None Clipped".split(" "),
    "Email * [ref] [ref] → Go [ref] ★Favourite [ref] Done✓ [ref] Step: 2 * [ref] Only generated: [ref] Own line Link",
    "Shadow text",
    "[hidden] secret in a tip",
    "[hidden] secret in white",
    "[hidden] secret off the page",
    "[hidden] secret in tiny letters",
    "[hidden] secret not drawn",
    "[hidden] secret of no shape",
    "[hidden] Not shown",
  ]);
});

test("a page whose own colour is dark shows light text, and hides dark text", async () => {
  const style = "html { background: black } body { color: white }";
  const content = `<style>${style}</style><p>light is seen</p><p style="color: black">secret in black</p>`;
  await open("dark.html", content);
  expect((await snapshot(client)).text).toBe("light is seen\n[hidden] secret in black");
});

test("a shape of 300,000 corners does not keep the page from being read", async () => {
  const corners = `Array.from({ length: 300000 }, (_, index) => index % 100 + "% " + index % 97 + "%")`;
  const script = `document.querySelector("p").style.clipPath = "polygon(" + ${corners} + ")"`;
  await open("corners.html", `<p>many corners</p><script>${script}</script>`);
  expect((await snapshot(client)).text).toBe("many corners");
});

test("a page of 5,000 elements comes in parts that together have every row and every button, once", async () => {
  await goto(client, "/table?rows=1000");
  const parts = await readParts();
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

test("long paragraphs come in parts of the length that was asked for, and no word is lost", async () => {
  const paragraphs = [1, 2, 3].map((number) =>
    Array.from({ length: 300 }, (_, index) => `word${number}x${index}`).join(" "),
  );
  await open("prose.html", paragraphs.map((words) => `<p>${words}</p>`).join(""));
  const parts = await readParts({ max_text_len: 500 });
  for (const { text } of parts) expect(text.length).toBeLessThanOrEqual(500);
  expect(parts.flatMap(({ text }) => text.split(/\s/))).toEqual(paragraphs.join(" ").split(" "));
});

test("a paragraph of many buttons with long names loses none of them on the way through its parts", async () => {
  const names = Array.from({ length: 1000 }, (_, index) => `${index} ${"&quot;".repeat(90)}`);
  await open("names.html", `<p>${names.map((name) => `<button aria-label="${name}">b</button>`).join(" ")}</p>`);
  const parts = await readParts();
  for (const { text, elements } of parts) expect(JSON.stringify([text, elements]).length).toBeLessThanOrEqual(20_100);
  const elements = parts.flatMap((part) => part.elements.split("\n"));
  expect(elements.map((line) => /^\[ref_\d+\] button "(\d+) (?:\\")+"$/.exec(line)?.[1])).toEqual(
    names.map((_, index) => String(index)),
  );
  for (const part of parts) expect(part.text.match(/\[ref_\d+\]/g)).toEqual(part.elements.match(/^\[ref_\d+\]/gm));
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
