import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { HOME, serveSite, siteSettings, snapshot } from "../e2e/browser-site.ts";
import { call, type Called, makePlace, type Place } from "../e2e/sandbox-client.ts";
import { connectInNetwork, writeHosts } from "../e2e/sandbox-network-world.ts";
import { textOf } from "../escape/sandbox-lab.ts";
import { NETWORK_MISSING } from "../setup/mandatory.ts";

let client: Client;

/** Names that lead to where no page may: the machine itself, its private network, its cloud's metadata. */
const HOSTS = ["127.0.0.1 rebound.good.test", "169.254.169.254 meta.good.test", "44.0.0.1 own.good.test"];

const PAGES: Readonly<Record<string, string>> = {
  "page.html": "<title>Good</title><p>from outside</p>",
  "leave.html": `<script>location = "http://bad.test/page.html"</script>`,
  "links.html": `<title>Links</title><a id=plain href="http://bad.test/page.html">a</a> <a id=tunnel href="https://bad.test/">b</a> <a id=dead href="https://good.test/">c</a>`,
  "load.html": `<title>Loads</title><img src="http://bad.test/hello.txt"><script src="http://rebound.good.test/x.js"></script><iframe src="http://169.254.169.254/latest/meta-data/" width=500 height=200></iframe>`,
};

const ALLOWED = ["good.test", "*.good.test"];

let place: Place;

function eventsOf({ structuredContent }: Called): unknown[] {
  const events = structuredContent?.["events"] ?? [];
  return Array.isArray(events) ? events : [events];
}

/** The server's machine serves the same pages on its own loopback and where clouds have their metadata: whoever gets there sees it. */
async function connectNear(at: Place, allow: readonly string[]): Promise<Client> {
  mkdirSync(join(at.folder, "site"));
  for (const [name, html] of Object.entries(PAGES)) writeFileSync(join(at.folder, "site", name), html);
  const settings = siteSettings();
  const connected = await connectInNetwork(at, { allow, hasCable: true, hosts: HOSTS, isServedNear: true, settings });
  await serveSite(connected);
  return connected;
}

beforeAll(async () => {
  if (NETWORK_MISSING !== undefined) return;
  place = makePlace();
  client = await connectNear(place, ALLOWED);
});

afterAll(async () => await client?.close());

beforeEach((context) => {
  if (NETWORK_MISSING !== undefined) context.skip(NETWORK_MISSING);
});

test("an allowed host opens", async () => {
  const opened = await call(client, "browser_goto", { url: "http://good.test/page.html" });
  expect(opened.structuredContent).toMatchObject({ title: "Good", status: 200 });
});

test.each([
  ["http://bad.test/page.html", "bad.test:80 is not in network.allow"],
  ["https://bad.test/page.html", "bad.test:443 is not in network.allow"],
  ["http://44.0.0.3/page.html", "44.0.0.3:80 is not in network.allow"],
  ["http://169.254.169.254/latest/meta-data/", "169.254.169.254:80 is not in network.allow"],
  ["http://127.0.0.2:8080/", "127.0.0.2:8080 is not in network.allow"],
  ["http://rebound.good.test/", "127.0.0.1"],
  ["http://meta.good.test/", "169.254.169.254"],
  ["http://own.good.test/", "44.0.0.1"],
])("%s is refused by the proxy, with the rule", async (url, reason) => {
  const refused = await call(client, "browser_goto", { url });
  expect(refused.isError).toBe(true);
  const [head = "", hint = ""] = textOf(refused).split("\n");
  expect(head).toContain("browser_goto failed: egress refused: ");
  expect(head).toContain(reason);
  expect(hint).toContain("network.allow");
});

test.each([
  ["http://typo.good.test/", "typo.good.test could not be resolved"],
  ["https://typo.good.test/", "typo.good.test could not be resolved"],
  ["https://good.test/", "no connection to good.test:443 (ECONNREFUSED)"],
])("%s is allowed and cannot be reached, which is not said to be a matter of rules", async (url, reason) => {
  const failed = await call(client, "browser_goto", { url });
  const [head = "", hint = ""] = textOf(failed).split("\n");
  expect(head).toContain(`browser_goto failed: egress failed: ${reason}`);
  expect(hint).toContain("the host is allowed");
  expect(hint).not.toMatch(/operator|its log/);
});

test("a redirect to a host that is refused names that host, and so does loading it again", async () => {
  const refused = await call(client, "browser_goto", { url: `${HOME}/redirect?to=https://bad.test/page.html` });
  expect(textOf(refused)).toContain("egress refused: bad.test:443 is not in network.allow");
  const again = await call(client, "browser_history", { action: "reload" });
  expect(textOf(again)).toContain("egress refused: bad.test:443 is not in network.allow");
});

test.each([
  ["#plain", "egress refused: bad.test:80 is not in network.allow", "ask the operator to add it"],
  ["#tunnel", "egress refused: bad.test:443 is not in network.allow", "ask the operator to add it"],
  ["#dead", "egress failed: no connection to good.test:443", "the host is allowed"],
])("a click on %s that leads nowhere says why, and what to do", async (selector, reason, hint) => {
  await call(client, "browser_goto", { url: "http://good.test/links.html" });
  const clicked = await call(client, "browser_click", { selector });
  const [event, ...others] = eventsOf(clicked);
  expect(event).toContain(`the page did not open: ${reason}`);
  expect(event).toContain(hint);
  expect(others).toEqual([]);
  expect(eventsOf(await call(client, "browser_snapshot"))).toEqual([]);
});

test("a server of the sandbox is at 0.0.0.0 and [::] too, for pages as well", async () => {
  const listen = `require("http").createServer((q, r) => r.setHeader("content-type", "text/html").end("<title>All</title><a href=http://0.0.0.0:8020/>x</a>")).listen(8020, "::")`;
  await call(client, "shell_exec", { command: `exec node -e '${listen}'`, background: true });
  await call(client, "shell_exec", { command: "until curl -so /dev/null http://127.0.0.1:8020/; do sleep 0.1; done" });
  for (const url of ["0.0.0.0:8020", "http://0.0.0.0:8020/", "[::]:8020", "http://[::]:8020/"]) {
    const { structuredContent } = await call(client, "browser_goto", { url });
    expect([url, structuredContent?.["title"]]).toEqual([url, "All"]);
  }
  await call(client, "browser_goto", { url: "http://localhost:8020/" });
  const clicked = await call(client, "browser_click", { selector: "a" });
  expect(clicked.structuredContent).toMatchObject({ url: "http://0.0.0.0:8020/", title: "All" });
});

/** Where a page of the sandbox itself sends the browser. */
const REDIRECTS = [
  "http://169.254.169.254/page.html",
  "http://meta.good.test/page.html",
  "http://rebound.good.test/page.html",
  "http://127.0.0.2/page.html",
];

test.each(REDIRECTS)("a redirect to %s is refused", async (to) => {
  const refused = await call(client, "browser_goto", { url: `${HOME}/redirect?to=${to}` });
  expect(textOf(refused)).toContain("browser_goto failed: egress refused: ");
});

test("a redirect to the loopback of the host ends at that of the sandbox", async () => {
  const refused = await call(client, "browser_goto", { url: `${HOME}/redirect?to=http://127.0.0.1/page.html` });
  expect(textOf(refused)).toContain("nothing listens there");
});

test("a name that leads elsewhere the second time is refused the second time", async () => {
  const url = "http://flips.good.test/page.html";
  writeHosts(place, [...HOSTS, "44.0.0.2 flips.good.test"]);
  expect((await call(client, "browser_goto", { url })).structuredContent).toMatchObject({ title: "Good" });
  writeHosts(place, [...HOSTS, "127.0.0.1 flips.good.test"]);
  const again = `fetch("/page.html?again").then((answer) => answer.status + " " + answer.statusText)`;
  const fetched = await call(client, "browser_evaluate", { expression: again });
  expect(fetched.structuredContent?.["value"]).toMatch(/^"403 egress refused: .*127\.0\.0\.1/);
  // Another address: the page itself is in the browser's cache.
  expect(textOf(await call(client, "browser_goto", { url: `${url}?new` }))).toContain("egress refused: ");
});

test("a page cannot lead to a host that is not allowed", async () => {
  await call(client, "browser_goto", { url: "http://good.test/leave.html" });
  await call(client, "browser_wait", { text: "egress refused" });
  expect((await snapshot(client)).text).toContain("egress refused: bad.test:80 is not in network.allow");
});

test("what a page loads from elsewhere is refused, and listed", async () => {
  await call(client, "browser_goto", { url: "http://good.test/load.html" });
  const failed = textOf(await call(client, "browser_requests"));
  for (const address of [
    "http://bad.test/hello.txt",
    "http://rebound.good.test/x.js",
    "http://169.254.169.254/latest",
  ]) {
    expect(failed).toMatch(new RegExp(`GET ${address}[^"]*: 403 egress refused`));
  }
});

test("a script finds no address of the machine by WebRTC, and no way out by WebSocket", async () => {
  await call(client, "browser_goto", { url: "http://good.test/page.html" });
  const gather = `new Promise((done) => { const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:44.0.0.3:3478" }] }); const found = []; peer.createDataChannel("x"); peer.onicecandidate = ({ candidate }) => { if (candidate) found.push(candidate.candidate); }; setTimeout(() => done(found), 2000); peer.createOffer().then((offer) => peer.setLocalDescription(offer)); })`;
  const found = await call(client, "browser_evaluate", { expression: gather });
  expect(found.structuredContent?.["value"]).toBe("[]");
  const socket = `new Promise((done) => { const s = new WebSocket("ws://bad.test/"); s.onerror = () => done("refused"); s.onopen = () => done("open"); })`;
  expect((await call(client, "browser_evaluate", { expression: socket })).structuredContent?.["value"]).toBe(
    '"refused"',
  );
});

test("all of these are reached where network.allow names their addresses", async () => {
  const own = makePlace();
  const careless = await connectNear(own, [...ALLOWED, "127.0.0.0/8", "169.254.169.254", "44.0.0.1"]);
  try {
    const shown = async (url: string): Promise<unknown> =>
      (await call(careless, "browser_goto", { url })).structuredContent?.["title"];
    for (const to of REDIRECTS) expect([to, await shown(`${HOME}/redirect?to=${to}`)]).toEqual([to, "Good"]);
    writeHosts(own, [...HOSTS, "127.0.0.1 flips.good.test"]);
    expect(await shown("http://flips.good.test/page.html")).toBe("Good");
    expect(await shown("http://own.good.test/page.html")).toBe("Good");
  } finally {
    await careless.close();
  }
});
