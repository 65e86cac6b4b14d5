import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { connectToSite, goto, HOME, pixel, refOf, snapshot } from "../e2e/browser-site.ts";
import { call } from "../e2e/sandbox-client.ts";
import { textOf } from "./sandbox-lab.ts";

/** What the sandbox's own list of users has. */
const LOOT = "sandbox:x:1000";

let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
});

/** Everything that the tools say about the page as it is now. */
async function everythingSeen(): Promise<string> {
  const looks = [
    await call(client, "browser_snapshot"),
    await call(client, "browser_evaluate", { expression: "document.documentElement.outerHTML" }),
    await call(client, "browser_screenshot", { path: "seen.png" }),
    await call(client, "browser_pdf", { path: "seen.pdf" }),
  ];
  return looks.map(textOf).join("\n");
}

test.each([
  ["file:///etc/passwd", "it is outside the workspace"],
  ["file:///workspace/../etc/passwd", "it is outside the workspace"],
  ["file://localhost/etc/passwd", "it is outside the workspace"],
  ["file:///workspace/%2e%2e/etc/passwd", "it is outside the workspace"],
  ["FILE:/etc/passwd", "it is outside the workspace"],
  ["file://elsewhere/workspace/x", "the browser does not open such addresses"],
  ["view-source:file:///etc/passwd", "the browser does not open such addresses"],
  [`view-source:${HOME}/index.html`, "the browser does not open such addresses"],
  ["chrome://version", "the browser does not open such addresses"],
  ["chrome://crash", "the browser does not open such addresses"],
  ["about:version", "the browser does not open such addresses"],
  ["devtools://devtools/bundled/inspector.html", "the browser does not open such addresses"],
  ["chrome-extension://x/y.html", "the browser does not open such addresses"],
  ["javascript:document.write(1)", "the browser does not open such addresses"],
  ["filesystem:http://localhost/x", "the browser does not open such addresses"],
  ["ftp://localhost/x", "the browser does not open such addresses"],
])("browser_goto refuses %s", async (url, reason) => {
  const refused = await call(client, "browser_goto", { url });
  expect(refused.isError).toBe(true);
  expect(textOf(refused)).toContain(reason);
  expect(await everythingSeen()).not.toContain(LOOT);
});

describe("a page of the workspace that leads out of it shows nothing of what is there", () => {
  const PAGES: Readonly<Record<string, string>> = {
    frame: `<iframe src="file:///etc/passwd" width=800 height=300></iframe>`,
    object: `<object data="file:///etc/passwd" width=800 height=300></object>`,
    refresh: `<meta http-equiv="refresh" content="0;url=file:///etc/passwd">`,
    script: `<script>location = "file:///etc/passwd"</script>`,
    link: `<a href="file:///etc/passwd">Out</a>`,
    tab: `<a href="file:///etc/passwd" target="_blank">Out</a>`,
  };

  test.each(Object.entries(PAGES))("%s", async (name, html) => {
    await call(client, "file_write", { path: `${name}.html`, content: `<title>Way out</title><p>start</p>${html}` });
    const results = [await call(client, "browser_goto", { url: `file:///workspace/${name}.html` })];
    const seen = await call(client, "browser_snapshot");
    results.push(seen);
    if (html.includes("<a ")) {
      const page = await snapshot(client);
      results.push(await call(client, "browser_click", { selector: refOf(page, '"Out"') }));
    }
    const said = `${results.map(textOf).join("\n")}\n${await everythingSeen()}`;
    expect(said).not.toContain(LOOT);
    expect(said).toContain("/etc/passwd: it is outside the workspace");
  });

  test("a link in the workspace", async () => {
    await call(client, "shell_exec", { command: "ln -s /etc/passwd link.txt" });
    const refused = await call(client, "browser_goto", { url: "file:///workspace/link.txt" });
    expect(textOf(refused)).toContain("it is outside the workspace");
  });
});

describe("what a page of the workspace is made of", () => {
  /** Each part shows by itself whether it was loaded. */
  const PARTS: Readonly<Record<string, string>> = {
    "loot.js": "window.loot = 'script loot'",
    "loot.css": "html { --loot: style loot }",
    "more.css": "html { --more: import loot }",
    "red.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100"><rect width="100" height="100" fill="red"/></svg>`,
    "loot.html": `<body style="background: red">`,
  };

  function pageOf(folder: string): string {
    return [
      `<title>Parts</title><body style="margin: 0">`,
      `<script src="${folder}/loot.js"></script>`,
      `<link rel="stylesheet" href="${folder}/loot.css"><style>@import "${folder}/more.css";</style>`,
      `<img src="${folder}/red.svg" style="display: block; width: 100px; height: 100px">`,
      `<div style="width: 100px; height: 100px; background: url(${folder}/red.svg)"></div>`,
    ].join("\n");
  }

  async function open(content: string): Promise<void> {
    await call(client, "file_write", { path: "parts.html", content });
    await call(client, "browser_goto", { url: "file:///workspace/parts.html" });
  }

  async function evaluate(expression: string): Promise<unknown> {
    const { structuredContent } = await call(client, "browser_evaluate", { expression });
    return structuredContent?.["value"];
  }

  /** What came of each part. */
  async function partsSeen(folder: string): Promise<unknown> {
    await open(pageOf(folder));
    await call(client, "browser_screenshot", { path: "parts.png" });
    return {
      script: await evaluate("window.loot"),
      style: await evaluate("getComputedStyle(document.documentElement).getPropertyValue('--loot')"),
      imported: await evaluate("getComputedStyle(document.documentElement).getPropertyValue('--more')"),
      fetched: await evaluate(`fetch("${folder}/loot.html").then((answer) => answer.text(), () => "")`),
      image: await evaluate("document.images[0].naturalWidth"),
      drawn: [await pixel(client, "parts.png", [50, 50]), await pixel(client, "parts.png", [50, 150])],
    };
  }

  const lime = "0,255,0";

  async function openFrames(folder: string): Promise<void> {
    const style = `style="display: block; width: 100px; height: 100px; border: 0"`;
    const source = `"${folder}/loot.html" ${style}`;
    const frames = [
      `<iframe src=${source}></iframe>`,
      `<iframe sandbox src=${source}></iframe>`,
      `<object data=${source}></object>`,
      `<embed src=${source}>`,
      `<iframe src="file:///workspace/nested.html" ${style}></iframe>`,
      `<iframe sandbox srcdoc="<body style='background: lime'>" ${style}></iframe>`,
    ];
    await call(client, "file_write", { path: "nested.html", content: pageOf(folder) });
    await open(`<title>Frames</title><body style="margin: 0">${frames.join("")}`);
  }

  /** The colour of each kind of frame, and last that of a frame which needs no file. */
  async function framesDrawn(): Promise<string[]> {
    await call(client, "browser_screenshot", { path: "frames.png" });
    return await Promise.all([50, 150, 250, 350, 450, 550].map((y) => pixel(client, "frames.png", [50, y])));
  }

  beforeAll(async () => {
    await call(client, "shell_exec", { command: "mkdir -p /tmp/loot; ln -s /tmp/loot linked" });
    for (const [name, content] of Object.entries(PARTS))
      await call(client, "file_write", { path: `own/${name}`, content });
    await call(client, "shell_exec", { command: "cp own/* /tmp/loot; mkdir links; ln -s /tmp/loot/* links" });
  });

  test("is loaded when it is in the workspace", async () => {
    const red = "255,0,0";
    const loaded = { script: '"script loot"', style: '"style loot"', imported: '"import loot"', image: "100" };
    expect(await partsSeen("file:///workspace/own")).toEqual({ ...loaded, fetched: '""', drawn: [red, red] });
    await openFrames("file:///workspace/own");
    // Frames that are loaded are drawn by processes of their own, each in its own time.
    await expect.poll(framesDrawn).toEqual([red, red, red, red, red, lime]);
  });

  test.each(["file:///tmp/loot", "file:///workspace/../tmp/loot", "linked", "links"])(
    "is not loaded when it is elsewhere: %s",
    async (folder) => {
      const white = "255,255,255";
      const none = { script: "undefined", style: '""', imported: '""', image: "0" };
      expect(await partsSeen(folder)).toEqual({ ...none, fetched: '""', drawn: [white, white] });
      await openFrames(folder);
      await expect.poll(framesDrawn).toContain(lime);
      expect(await framesDrawn()).not.toContain("255,0,0");
    },
  );
});

test("a page of a server cannot lead to files", async () => {
  await call(client, "browser_goto", { url: `${HOME}/redirect?to=file:///etc/passwd` });
  await goto(client, "/index.html");
  await call(client, "browser_evaluate", { expression: "void (location = 'file:///etc/passwd')" });
  await call(client, "browser_evaluate", { expression: "fetch('file:///etc/passwd').then((r) => r.text())" });
  expect(await everythingSeen()).not.toContain(LOOT);
});

test("pictures and PDFs go nowhere but into the workspace", async () => {
  await goto(client, "/index.html");
  await call(client, "shell_exec", { command: "ln -s /tmp out; ln -s /tmp/x.png dangling.png" });
  for (const path of ["/etc/x.png", "../x.png", "out/x.png", "dangling.png", "/proc/self/root/tmp/x.png", "a\0b.png"]) {
    for (const tool of ["browser_screenshot", "browser_pdf"]) {
      const refused = await call(client, tool, { path });
      expect(refused.isError).toBe(true);
      expect(textOf(refused)).toMatch(/outside the workspace|NUL character/);
    }
  }
  expect(textOf(await call(client, "shell_exec", { command: "ls /tmp" }))).not.toContain("x.png");
});

test("a download's name cannot lead out of its folder, nor hide", async () => {
  const downloads: unknown[] = [];
  for (const name of ["..%2F..%2Fetc%2Fevil.csv", ".bashrc", "a%5C..%5Cb.csv"]) {
    const got = await goto(client, `/file?name=${name}`);
    downloads.push(...(got.structuredContent?.["downloads"] as string[]));
  }
  expect(downloads).toHaveLength(3);
  for (const path of downloads) expect(path).toMatch(/^downloads\/[^./\\][^/\\]*$/);
  const { structuredContent } = await call(client, "file_list", { path: ".", include_hidden: true });
  expect(JSON.stringify(structuredContent)).not.toContain(".bashrc");
});

test("a download into a folder that is a link out of the workspace fails, and says so", async () => {
  await call(client, "shell_exec", { command: "rm -rf downloads; ln -s /tmp downloads" });
  const got = await goto(client, "/file?name=loot.csv");
  expect(textOf(got)).toContain("the download of loot.csv failed");
  await call(client, "shell_exec", { command: "rm downloads" });
  expect(textOf(await call(client, "shell_exec", { command: "ls /tmp" }))).not.toContain("loot.csv");
});

test("there is no port by which a page could drive the browser or reach the guest", async () => {
  await goto(client, "/index.html");
  const listening = `awk '$4 == "0A" { print $2 }' /proc/net/tcp /proc/net/tcp6 | cut -d: -f2 | sort -u`;
  const { structuredContent } = await call(client, "shell_exec", { command: listening });
  expect(String(structuredContent?.["stdout"]).trim().split("\n")).toEqual(["1F40", "1F41"]);
  const tried = `Promise.allSettled([9222, 3128, 1, 80].map((p) => fetch("http://127.0.0.1:" + p + "/json/version", { mode: "no-cors" }))).then((all) => all.map((one) => one.status))`;
  const answer = await call(client, "browser_evaluate", { expression: tried });
  expect(answer.structuredContent?.["value"]).toBe('["rejected","rejected","rejected","rejected"]');
});

test("a page that makes itself unreadably deep, long or busy costs a bounded answer", async () => {
  await goto(client, "/index.html");
  const deep = `(() => { let at = document.body; for (let n = 0; n < 20000; n += 1) { const next = document.createElement("div"); at.append(next); at = next; } at.append("bottom"); document.body.append("x".repeat(3000000)); return 1; })()`;
  await call(client, "browser_evaluate", { expression: deep });
  const seen = await call(client, "browser_snapshot");
  expect(textOf(seen).length).toBeLessThan(25_100);
});
