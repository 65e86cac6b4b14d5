import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { connectToSite, goto, HOME, refOf, snapshot } from "./browser-site.ts";
import { call, type Called, readText } from "./sandbox-client.ts";

let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
});

function said(result: Called): string[] {
  return result.content[0]?.text?.split("\n").slice(0, 2) ?? [];
}

async function click(words: string, args: Record<string, unknown> = {}): Promise<Called> {
  return await call(client, "browser_click", { selector: refOf(await snapshot(client), words), ...args });
}

describe("[002-goto] a page that does not come is explained, with what to do", () => {
  test.each([
    ["http://localhost:8999/", "nothing listens there (ERR_CONNECTION_REFUSED)", /start the server in this sandbox/],
    ["https://example.org/", "there is no network in this sandbox", /network\.allow/],
    [`${HOME}/circle`, "it redirects in a circle (ERR_TOO_MANY_REDIRECTS)", /open the page/],
    ["https://localhost:8000/", "the server does not speak TLS", /use http:\/\//],
    ["file:///workspace/none.html", "there is no such file (ERR_FILE_NOT_FOUND)", /file_list/],
    ["http://localhost:22/", "browsers refuse that port (ERR_UNSAFE_PORT)", /another port/],
    ["http://", "it is no address", /in full/],
  ])("%s", async (url, reason, hint) => {
    const failed = await call(client, "browser_goto", { url });
    expect(failed.isError).toBe(true);
    const [head = "", next = ""] = said(failed);
    expect(head).toContain(`: ${reason}`);
    expect(next).toMatch(hint);
  });

  test("a certificate that nobody vouches for", async () => {
    const subject = "-subj /CN=localhost -addext subjectAltName=DNS:localhost";
    const make = `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /tmp/k -out /tmp/c ${subject}`;
    const serve = `require("https").createServer({key:fs.readFileSync("/tmp/k"),cert:fs.readFileSync("/tmp/c")}, (q, r) => r.end("hello")).listen(8443)`;
    await call(client, "shell_exec", { command: make });
    await call(client, "shell_exec", { command: `exec node -e '${serve}'`, background: true });
    const reached = "until curl -sk -o /dev/null https://localhost:8443/; do sleep 0.1; done";
    await call(client, "shell_exec", { command: reached });
    const [head, hint] = said(await call(client, "browser_goto", { url: "https://localhost:8443/" }));
    expect(head).toBe(
      "browser_goto failed: https://localhost:8443/: its certificate is not trusted (ERR_CERT_AUTHORITY_INVALID)",
    );
    expect(hint).toContain("a host with a certificate that is trusted");
    await showLink("https://localhost:8443/");
    expect((await call(client, "browser_click", { selector: "a" })).structuredContent?.["events"]).toEqual([
      expect.stringMatching(
        /^the page did not open: https:\/\/localhost:8443\/: its certificate is not trusted .*use http:/,
      ),
    ]);
  });

  test("a server that does not answer ends with the time-out", async () => {
    const [head, hint] = said(await call(client, "browser_goto", { url: `${HOME}/never`, timeout_seconds: 1 }));
    expect(head).toBe(`browser_goto failed: ${HOME}/never: it did not load in 1 s`);
    expect(hint).toContain("raise timeout_seconds");
    expect((await call(client, "browser_snapshot")).isError).toBeUndefined();
    expect((await goto(client, "/slow?ms=300")).structuredContent).toMatchObject({ title: "Slow" });
  });

  test("[002-goto] wait_until says when a page counts as there, and timeout how long that may take", async () => {
    const url = `${HOME}/unfinished`;
    for (const wait_until of ["commit", "domcontentloaded"]) {
      const opened = await call(client, "browser_goto", { url, wait_until, timeout: 30 });
      expect(said(opened)[0]).toContain(`browser_goto ok: ${url}`);
    }
    expect((await snapshot(client)).text).toBe("text");
    for (const wait_until of ["load", "networkidle", undefined]) {
      const failed = await call(client, "browser_goto", { url, ...(wait_until && { wait_until }), timeout: 1 });
      expect(said(failed)[0]).toBe(`browser_goto failed: ${url}: it did not load in 1 s`);
    }
    expect(said(await call(client, "browser_goto", { url: `${HOME}/never`, timeout: 1 }))[0]).toBe(
      `browser_goto failed: ${HOME}/never: it did not load in 1 s`,
    );
  });

  test("without a time-out of the call's own it is 30 s for a page, 10 s for a snapshot and 5 s for an action", async () => {
    const { tools } = await client.listTools();
    const defaults = ["browser_goto", "browser_snapshot", "browser_click", "browser_type"].map(
      (name) => tools.find((tool) => tool.name === name)?.inputSchema.properties?.["timeout_seconds"],
    );
    expect(defaults).toMatchObject([{ default: 30 }, { default: 10 }, { default: 5 }, { default: 5 }]);
  });

  test.each([404, 500])("status %s is a failure that can be looked at", async (code) => {
    const failed = await goto(client, `/status?code=${code}`);
    expect(failed.isError).toBe(true);
    expect(said(failed)[0]).toBe(`browser_goto failed: the server answered ${code} for ${HOME}/status?code=${code}`);
    expect((await snapshot(client)).text).toBe("# Sorry");
  });
});

async function showLink(href: string): Promise<void> {
  await goto(client, "/index.html");
  const html = `<a href="${href}">Link</a><form action="${href}"><input name="q"></form>`;
  await call(client, "browser_evaluate", { expression: `void (document.body.innerHTML = ${JSON.stringify(html)})` });
}

const DEAD = "http://localhost:8999/";

test.each([
  ["browser_click", { selector: "a" }, DEAD, /nothing listens there .*; start the server in this sandbox/],
  [
    "browser_press",
    { selector: "a", key: "Enter" },
    DEAD,
    /nothing listens there .*; start the server in this sandbox/,
  ],
  [
    "browser_type",
    { selector: "input", text: "x", submit: true },
    DEAD,
    /localhost:8999\/\?q=x: nothing listens there/,
  ],
  [
    "browser_click",
    { selector: "a" },
    "/missing.html",
    /the server answered 404 for .*missing\.html; .*browser_snapshot/,
  ],
  ["browser_click", { selector: "a" }, "/status?code=500", /the server answered 500 for .*; .*look at its log/],
])("%s with %j that leads to %s says that no such page came", async (tool, args, href, event) => {
  await showLink(href);
  const { structuredContent } = await call(client, tool, args);
  expect(structuredContent?.["events"]).toEqual([expect.stringMatching(event)]);
  expect((await call(client, "browser_snapshot")).structuredContent?.["events"]).toBeUndefined();
});

test("a page that fails in a tab of its own is told of, too", async () => {
  for (const [href, event] of [
    [DEAD, /^the page did not open: http:\/\/localhost:8999\/: nothing listens there/],
    ["/missing.html", /^the server answered 404 for .*missing\.html/],
  ] as const) {
    await showLink(href);
    await call(client, "browser_evaluate", { expression: "void (document.querySelector('a').target = '_blank')" });
    const { structuredContent } = await call(client, "browser_click", { selector: "a" });
    expect(structuredContent?.["events"]).toEqual([
      expect.stringMatching(/^a new tab opened/),
      expect.stringMatching(event),
    ]);
    await call(client, "browser_tabs", { action: "close" });
  }
});

test("a link to a download or to another page says nothing of failures", async () => {
  await showLink("/file?name=link.csv");
  const clicked = await call(client, "browser_click", { selector: "a" });
  expect(JSON.stringify(clicked.structuredContent?.["events"] ?? [])).not.toContain("did not open");
  await showLink("/redirect?to=/form.html");
  expect((await call(client, "browser_click", { selector: "a" })).structuredContent?.["events"]).toBeUndefined();
});

test("a page opens right after others that failed", async () => {
  for (let round = 0; round < 4; round += 1) {
    for (const url of [DEAD, DEAD]) await call(client, "browser_goto", { url });
    expect(said(await goto(client, "/index.html"))[0]).toBe(
      `browser_goto ok: ${HOME}/index.html (Front page), status 200`,
    );
  }
});

test("a page without any element, as between two pages, is looked at like any other", async () => {
  await goto(client, "/index.html");
  await call(client, "browser_evaluate", { expression: "void document.documentElement.remove()" });
  for (const [tool, args] of [
    ["browser_screenshot", {}],
    ["browser_screenshot", { full_page: true }],
    ["browser_scroll", { to: "bottom" }],
    ["browser_snapshot", {}],
  ] as const) {
    expect(said(await call(client, tool, args))[0]).toContain(`${tool} ok`);
  }
});

test("what is in the way of a click is named", async () => {
  await goto(client, "/trouble.html");
  const [covered = "", hint = ""] = said(
    await call(client, "browser_click", { selector: "#covered", timeout_seconds: 1 }),
  );
  expect(covered).toMatch(/the element is covered \(selector="#covered"\) by <div id="veil"/);
  expect(hint).toContain("close or move away what covers it");
  expect(said(await call(client, "browser_click", { selector: "button", timeout_seconds: 1 }))[0]).toMatch(
    /\d elements match/,
  );
  expect(said(await call(client, "browser_click", { selector: "a[[" }))[0]).toContain("it is no CSS selector");
  await goto(client, "/form.html");
  expect(said(await call(client, "browser_click", { selector: "#never", timeout_seconds: 1 }))[0]).toContain(
    "the element is disabled",
  );
  expect(said(await call(client, "browser_type", { selector: "#form", text: "x", timeout_seconds: 1 }))[0]).toContain(
    "cannot be used like this",
  );
});

test("dialogs are answered and reported: alerts accepted, questions declined unless the call says otherwise", async () => {
  await goto(client, "/dialogs.html");
  expect((await click('"Alert"')).structuredContent?.["events"]).toEqual(['dialog alert "Mind the gap" was accepted']);
  expect((await click('"Confirm"')).structuredContent?.["events"]).toEqual([
    'dialog confirm "Really delete?" was dismissed',
  ]);
  expect((await snapshot(client)).text).toContain("confirm: false");
  await click('"Confirm"', { accept_dialogs: true });
  expect((await snapshot(client)).text).toContain("confirm: true");
  await click('"Prompt"', { accept_dialogs: true });
  expect((await snapshot(client)).text).toContain("prompt: nobody");
});

test("a page that asks whether to leave it is left, and the question is reported", async () => {
  await goto(client, "/dialogs.html");
  await click('"Unsaved"');
  expect((await goto(client, "/index.html")).structuredContent).toMatchObject({
    url: `${HOME}/index.html`,
    events: ['dialog beforeunload "" was accepted'],
  });
});

test("downloads land in the workspace under harmless names, and replace nothing", async () => {
  await goto(client, "/downloads.html");
  expect((await click('"Report"')).structuredContent?.["downloads"]).toEqual(["downloads/report.csv"]);
  const again = await goto(client, "/file?name=report.csv");
  expect(again.structuredContent).toMatchObject({ downloads: ["downloads/report-1.csv"] });
  const { structuredContent } = await call(client, "file_read", { path: "downloads/report-1.csv" });
  expect(structuredContent).toMatchObject({ content: "a,b\n1,2\n" });
});

test("a tab that a page opens is followed, and all are listed", async () => {
  await goto(client, "/popup.html");
  const opened = await click('"Window"');
  expect(opened.structuredContent).toMatchObject({
    url: `${HOME}/form.html`,
    tabs: [{ title: "Opener" }, { title: "Form", is_current: true }],
    events: [expect.stringMatching(/^a new tab opened: tab \d+/)],
  });
  const closed = await call(client, "browser_tabs", { action: "close" });
  expect(closed.structuredContent).toMatchObject({ title: "Opener" });
});

/** The page answers this, and nothing more. */
async function hang(): Promise<void> {
  await call(client, "browser_evaluate", { expression: "void setTimeout(() => { for (;;); }, 0)" });
}

test.each([
  ["browser_snapshot", {}],
  ["browser_click", { selector: "#gone" }],
])("a page whose script never ends is closed when %s finds it so, and the next call works", async (tool, args) => {
  await goto(client, "/trouble.html");
  await hang();
  const [head, hint] = said(await call(client, tool, { ...args, timeout_seconds: 1 }));
  expect(head).toBe(`${tool} failed: the page does not answer, since its script never ends; it was closed`);
  expect(hint).toContain("go on with browser_goto");
  expect((await goto(client, "/index.html")).structuredContent).toMatchObject({ title: "Front page" });
});

test("another page opens after one whose script never ends, at the second try at the latest", async () => {
  await goto(client, "/trouble.html");
  await hang();
  const url = `${HOME}/index.html`;
  const first = await call(client, "browser_goto", { url, timeout_seconds: 2 });
  expect(said(first)[0]).toMatch(/the page does not answer|browser_goto ok/);
  expect((await goto(client, "/index.html")).structuredContent).toMatchObject({ title: "Front page" });
});

test("a browser that is killed starts again at the next call, which says so", async () => {
  await goto(client, "/index.html");
  await call(client, "shell_exec", { command: "pkill -9 -f 'chromium --disable-field-trial'" });
  const next = await goto(client, "/index.html");
  const first = next.isError === true ? await goto(client, "/index.html") : next;
  expect(first.structuredContent).toMatchObject({
    title: "Front page",
    events: ["the browser had ended and was started again: pages, cookies and refs are gone"],
  });
});

/** The answer of a browser that replaces one that was killed: the call before may still meet the end of that one. */
async function afterKill(tool: string, args: Record<string, unknown> = {}): Promise<Called> {
  await goto(client, "/index.html");
  const driverEnds = "while pgrep -f 'browser-drive[r]' > /dev/null; do sleep 0.05; done";
  await call(client, "shell_exec", { command: `pkill -9 -f 'chromiu[m] --disable-field-trial'; ${driverEnds}` });
  const first = await call(client, tool, args);
  return said(first)[0]?.includes("the browser ended") === true ? await call(client, tool, args) : first;
}

const RESTARTED = "the browser had ended and was started again: pages, cookies and refs are gone";

test("a restarted browser is told of once, by a call that fails as well as by one that does not", async () => {
  const [head, hint] = said(await afterKill("browser_click", { selector: "ref_5" }));
  expect(head).toBe(`browser_click failed: element not found (selector="ref_5"); ${RESTARTED}`);
  expect(hint).toContain("call browser_snapshot first");
  expect((await call(client, "browser_snapshot")).structuredContent?.["events"]).toBeUndefined();
  expect((await afterKill("browser_snapshot")).structuredContent?.["events"]).toEqual([RESTARTED]);
});

test("a page whose process dies is replaced, and the next call says so", async () => {
  await goto(client, "/index.html");
  await call(client, "shell_exec", { command: "pkill -9 -f -- '--type=renderer'" });
  const seen = await call(client, "browser_snapshot");
  const text = seen.content[0]?.text ?? "";
  expect(text).toMatch(/crashed/);
  expect((await goto(client, "/index.html")).structuredContent).toMatchObject({ title: "Front page" });
});

test("a call that is cancelled ends at once, and the browser goes on", async () => {
  const leaving = new AbortController();
  const waiting = client.callTool(
    { name: "browser_goto", arguments: { url: `${HOME}/never` } },
    { signal: leaving.signal },
  );
  setTimeout(() => leaving.abort(), 300);
  await expect(waiting).rejects.toThrow(/abort/i);
  expect(readText(await goto(client, "/index.html")).head).toContain("browser_goto ok");
});
