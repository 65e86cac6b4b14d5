import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, goto } from "./browser-site.ts";
import { call } from "./sandbox-client.ts";

let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
});

async function show(html: string): Promise<void> {
  await goto(client, "/index.html");
  await call(client, "browser_evaluate", { expression: `void (document.body.innerHTML = ${JSON.stringify(html)})` });
}

async function valueOf(expression: string): Promise<unknown> {
  return JSON.parse(String((await call(client, "browser_evaluate", { expression })).structuredContent?.["value"]));
}

/** The first line and the hint. */
async function type(selector: string, text: string, args: Record<string, unknown> = {}): Promise<string[]> {
  const typed = await call(client, "browser_type", { selector, text, timeout_seconds: 20, ...args });
  return typed.content[0]?.text?.split("\n").slice(0, 2) ?? [];
}

test.each([
  [`<input id="x" value="a b" onfocus="this.setSelectionRange(0, 0)">`, "a b, more"],
  [`<input id="x" type="email" value="a@b.example">`, "a@b.example, more"],
  [`<textarea id="x">one\ntwo\nthree</textarea>`, "one\ntwo\nthree, more"],
  [`<label id="x">Name <input class="field" value="a"></label>`, "a, more"],
])("text is added at the end of all that is in %s", async (html, expected) => {
  await show(html);
  expect((await type("#x", ", more", { clear: false }))[0]).toContain("browser_type ok");
  expect(await valueOf("(document.querySelector('.field') ?? document.querySelector('#x')).value")).toBe(expected);
});

test("text is added at the end of rich text, which stays as it is", async () => {
  await show(`<div id="x" contenteditable><p>one <b>bold</b></p><p>two</p></div><p>after</p>`);
  await type("#x", ", more", { clear: false });
  expect(await valueOf("document.querySelector('#x').innerHTML")).toBe("<p>one <b>bold</b></p><p>two, more</p>");
});

test.each([
  [`<button id="x">Go</button>`, "the element cannot be used like this"],
  [`<input id="x" type="submit" value="Go">`, "the element cannot be used like this"],
  [`<input id="x" type="checkbox">`, "the element cannot be used like this"],
  [`<p id="x">plain</p>`, "the element cannot be used like this"],
  [`<input id="x" readonly value="fixed">`, "the field is read-only"],
  [`<textarea id="x" readonly>fixed</textarea>`, "the field is read-only"],
  [`<input id="x" disabled value="fixed">`, "the element is disabled"],
  [`<div id="x" role="textbox" contenteditable aria-readonly="true">fixed</div>`, "the field is read-only"],
])("nothing can be added to %s, and the answer says so", async (html, reason) => {
  await show(html);
  for (const clear of [true, false]) {
    expect((await type("#x", "more", { clear, timeout_seconds: 1 }))[0]).toContain(`browser_type failed: ${reason}`);
  }
});

test.each([
  ["number", "abc", "", "12.5"],
  ["number", "1,5", "", "12.5"],
  ["date", "tomorrow", "", "2026-03-28"],
  ["time", "half past nine", "", "09:30"],
  ["datetime-local", "now", "", "2026-03-28T09:30"],
  ["month", "March", "", "2026-03"],
  ["week", "next", "", "2026-W13"],
  ["color", "reddish", "#000000", "#ff8800"],
  ["range", "loud", "50", "12.5"],
  ["range", "1000", "50", "12.5"],
])("a field of type %s refuses %j, keeps what it has, and says how to write it", async (kind, text, kept, example) => {
  await show(`<input id="x" type="${kind}" step="any">`);
  const [head, hint] = await type("#x", text);
  expect(head).toContain(`browser_type failed: the field takes no such text: it is of type ${kind}`);
  expect(hint).toContain(example);
  expect(await valueOf("document.querySelector('#x').value")).toBe(kept);
  expect((await type("#x", ` ${example} `))[0]).toContain("browser_type ok");
  expect(await valueOf("document.querySelector('#x').value")).toBe(example);
  // An empty text is always taken.
  expect((await type("#x", ""))[0]).toContain("browser_type ok");
});

test("several files are refused by a field for one, and files by a field for folders", async () => {
  await show(`<input id="x" type="file"><input id="folder" type="file" webkitdirectory>`);
  for (const path of ["one.txt", "two.txt"]) await call(client, "file_write", { path, content: path });
  const upload = async (selector: string, paths: string[]): Promise<string[]> => {
    const sent = await call(client, "browser_upload", { selector, paths, timeout_seconds: 20 });
    return sent.content[0]?.text?.split("\n").slice(0, 2) ?? [];
  };
  const [head, hint] = await upload("#x", ["one.txt", "two.txt"]);
  expect(head).toContain("browser_upload failed: the field takes one file only");
  expect(hint).toContain("one path");
  expect((await upload("#folder", ["one.txt"]))[0]).toContain("browser_upload failed: the field takes a folder");
  expect((await upload("#x", ["one.txt"]))[0]).toContain("browser_upload ok");
});
