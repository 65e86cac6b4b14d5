import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, refOf, snapshot } from "../e2e/browser-site.ts";
import { type Called, call } from "../e2e/sandbox-client.ts";

/** A page must not change what an element is between the snapshot that the agent has read and what the agent does with it. */
let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
  await call(client, "file_write", { path: "a.txt", content: "a" });
});

/** Opens a page and returns the ref of the element with those words. */
async function open(content: string, words: string): Promise<string> {
  await call(client, "file_write", { path: "changed.html", content });
  await call(client, "browser_goto", { url: "file:///workspace/changed.html" });
  return refOf(await snapshot(client), words);
}

async function run(expression: string): Promise<string> {
  const { structuredContent } = await call(client, "browser_evaluate", { expression });
  return String(structuredContent?.["value"]);
}

const saidBy = ({ content }: Called): string => content[0]?.text ?? "";

const BUTTON = `<p id="log"></p><button onclick="log.textContent += this.textContent">Cancel</button>`;
const RENAME = `document.querySelector("button").textContent = "Delete all"`;

const CHANGES: Readonly<Record<string, string>> = {
  "its text": RENAME,
  "its label": `document.querySelector("button").setAttribute("aria-label", "Delete all")`,
  "its role": `document.querySelector("button").setAttribute("role", "switch")`,
  "its role to that of a field": `document.querySelector("button").setAttribute("role", "textbox")`,
};

test.each(Object.keys(CHANGES))("a button that changes %s after the snapshot is not clicked", async (what) => {
  const selector = await open(BUTTON, '"Cancel"');
  await run(CHANGES[what] ?? "");
  const clicked = saidBy(await call(client, "browser_click", { selector }));
  expect(clicked).toMatch(/^browser_click failed: the element was button "Cancel" in the snapshot and is \w+ ["n]/);
  expect(clicked).toContain("hint: call browser_snapshot again");
  expect(await run("log.textContent")).toBe('""');
  await call(client, "browser_click", { selector: refOf(await snapshot(client), `[${selector}]`) });
  expect(await run("log.textContent")).not.toBe('""');
});

const FIELDS = `<label>Name <input id="field"></label><label>Colour <select id="field2"><option>red</option><option>blue</option></select></label>
  <label>File <input type="file" id="field3"></label><div style="height: 3000px"></div>`;
const USES: readonly (readonly [tool: string, words: string, args: Readonly<Record<string, unknown>>])[] = [
  ["browser_type", "textbox", { text: "mine" }],
  ["browser_select", "combobox", { values: ["blue"] }],
  ["browser_hover", "combobox", {}],
  ["browser_press", "textbox", { key: "x" }],
  ["browser_scroll", "textbox", {}],
  ["browser_upload", "file field", { paths: ["a.txt"] }],
  ["browser_screenshot", "textbox", {}],
];

test.each(USES)("%s refuses a field whose label has changed since the snapshot", async (tool, words, args) => {
  const selector = await open(FIELDS, words);
  const rename = `document.querySelectorAll("label").forEach((label) => (label.firstChild.data = "Password "))`;
  await run(rename);
  const said = saidBy(await call(client, tool, { selector, ...args }));
  expect(said).toMatch(/the element was [a-z ]+ "\w+" in the snapshot and is [a-z ]+ "Password" now/);
  expect(await run("field.value + field2.value + field3.files.length")).toBe('"red0"');
  const again = await call(client, tool, { selector: refOf(await snapshot(client), words), ...args });
  expect(again.isError ?? false).toBe(false);
});

const LATE: Readonly<Record<string, string>> = {
  "the pointer reaches it": `void (document.querySelector("button").onpointerenter = () => { ${RENAME} })`,
  "the agent waits until it is enabled": `document.querySelector("button").disabled = true;
    void setTimeout(() => { ${RENAME}; document.querySelector("button").disabled = false }, 1000)`,
};

test.each(Object.keys(LATE))("a button that changes its text when %s is not clicked", async (when) => {
  const selector = await open(BUTTON, '"Cancel"');
  await run(LATE[when] ?? "");
  const clicked = saidBy(await call(client, "browser_click", { selector }));
  expect(await run("log.textContent")).toBe('""');
  expect(clicked).toContain('was button "Cancel" in the snapshot and is button "Delete all" now');
});

test("what was clicked is reported as it was when it was pressed", async () => {
  const style =
    "<style>button { margin-top: 300px } button:hover b { display: none } button:not(:hover) i { display: none }</style>";
  const selector = await open(`${style}<button><b>Cancel</b><i>Delete all</i></button>`, '"Cancel"');
  const clicked = await call(client, "browser_click", { selector });
  expect(saidBy(clicked)).toContain('clicked button "Delete all"');
});

test("elements whose state, value or content changes can still be used", async () => {
  const page = `<button aria-expanded="false" onclick="this.setAttribute('aria-expanded', 'true')">Menu</button>
    <input aria-label="Name" value="a"><div contenteditable>rich</div>
    <div role="textbox" tabindex="0">plain</div>
    <button onpointerdown="this.textContent = 'Pressed'" onclick="document.title = this.textContent">Press</button>`;
  const menu = await open(page, '"Menu"');
  const seen = await snapshot(client);
  for (const text of ["x", "y"]) {
    await call(client, "browser_click", { selector: menu });
    const name = refOf(seen, 'textbox "Name"');
    expect(saidBy(await call(client, "browser_type", { selector: name, text }))).toContain(`typed into textbox "Name"`);
    const rich = refOf(seen, 'textbox "rich"');
    expect(saidBy(await call(client, "browser_type", { selector: rich, text }))).toContain("typed into textbox");
  }
  await run(`document.querySelector("[role=textbox]").textContent = "other"`);
  expect(saidBy(await call(client, "browser_click", { selector: refOf(seen, '"plain"') }))).toContain(
    "clicked textbox",
  );
  expect(saidBy(await call(client, "browser_click", { selector: refOf(seen, '"Press"') }))).toContain("clicked button");
  expect(await run("document.title")).toBe('"Pressed"');
});

test("a CSS selector uses the element as it is", async () => {
  await open(BUTTON, '"Cancel"');
  await run(RENAME);
  await call(client, "browser_click", { selector: "button" });
  expect(await run("log.textContent")).toBe('"Delete all"');
});
