import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { HOME, serveSite, siteSettings, snapshot } from "../e2e/browser-site.ts";
import { call, makePlace, type Place } from "../e2e/sandbox-client.ts";
import { connectInNetwork, writeHosts } from "../e2e/sandbox-network-world.ts";
import { textOf } from "./sandbox-lab.ts";

let client: Client;

/** Names that lead to where no page may: the machine itself, its private network, its cloud's metadata. */
const HOSTS = ["127.0.0.1 rebound.good.test", "169.254.169.254 meta.good.test", "44.0.0.1 own.good.test"];

const PAGES: Readonly<Record<string, string>> = {
  "page.html": "<title>Good</title><p>from outside</p>",
  "leave.html": `<script>location = "http://bad.test/page.html"</script>`,
  "load.html": `<title>Loads</title><img src="http://bad.test/hello.txt"><script src="http://rebound.good.test/x.js"></script><iframe src="http://169.254.169.254/latest/meta-data/" width=500 height=200></iframe>`,
};

const ALLOWED = ["good.test", "*.good.test"];

let place: Place;

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
  if (process.getuid?.() !== 0) return;
  place = makePlace();
  client = await connectNear(place, ALLOWED);
});

afterAll(async () => await client?.close());

beforeEach((context) => {
  if (process.getuid?.() !== 0) context.skip("only root can make a network to test in");
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
