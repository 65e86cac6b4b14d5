import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "@modelcontextprotocol/client";
import { HOME, serveSite, siteSettings } from "../e2e/browser-site.ts";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { AUTH, PageOperator, PageStream, token } from "../escape/dashboard-lab.ts";
import { until } from "./harness.ts";

let server: Server;
let ada: Client;
let root: PageOperator;
let session: { readonly session_id: string };
let name: string;

beforeAll(async () => {
  server = new Server(makePlace(), siteSettings(AUTH));
  const { origin } = new URL(await server.url());
  ada = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token("ada")}` });
  root = await PageOperator.byToken(origin, "root");
  const { structuredContent } = await call(ada, "sandbox_create");
  session = { session_id: String(structuredContent?.["session_id"]) };
  name = (await root.get("now")).json.sandboxes[0].id;
  await serveSite(ada, session);
});

afterAll(() => server.stop());

const at = (what: string): string => `sandboxes/${name}/${what}`;

function jpegOf(image: string): Buffer {
  return Buffer.from(image, "base64");
}

describe("the browser's picture", () => {
  test("starts no browser, comes when there is one, and again when the page has changed", async () => {
    const stream = await PageStream.open(root, at("browser"));
    await stream.find(({ event }) => event === "none");
    const before = (await root.get(at("processes"))).json.processes.map(({ command }: { command: string }) => command);
    expect(before.join("\n")).not.toMatch(/chrom/i);
    await call(ada, "browser_goto", { url: `${HOME}/index.html`, ...session });
    const { data } = await stream.find(({ event }) => event === "picture");
    expect(data).toMatchObject({ url: `${HOME}/index.html`, title: "Front page", width: expect.any(Number) });
    expect(jpegOf(data.image).subarray(0, 3).toString("hex")).toBe("ffd8ff");
    await call(ada, "browser_goto", { url: `${HOME}/form.html`, ...session });
    await stream.find(({ data: picture }) => picture.url === `${HOME}/form.html`);
    stream.close();
  });

  test("is clicked and typed into by who has taken the sandbox over, and by nobody else", async () => {
    const box = "JSON.stringify(document.querySelector('input').getBoundingClientRect())";
    const found = await call(ada, "browser_evaluate", { expression: box, ...session });
    const rect: unknown = JSON.parse(JSON.parse(String(found.structuredContent?.["value"])));
    const { x, y, width, height } = rect as Record<"x" | "y" | "width" | "height", number>;
    const click = { click: { x: x + width / 2, y: y + height / 2 } };
    expect((await root.post(at("browser/input"), click)).status).toBe(403);
    await root.post(at("takeover"));
    expect((await root.post(at("browser/input"), click)).status).toBe(200);
    await root.post(at("browser/input"), { type: "typed by a person" });
    await root.post(at("browser/input"), { key: "Backspace" });
    await root.post(at("browser/input"), { scroll: { x: 10, y: 10, dy: -50 } });
    expect((await root.post(at("browser/input"), { key: "NoSuchKey" })).status).toBeGreaterThanOrEqual(400);
    expect((await root.post(at("browser/input"), { click: { x: -1, y: 0 } })).status).toBe(400);
    await root.post(at("giveback"));
    const value = await until(
      () => call(ada, "browser_evaluate", { expression: "document.querySelector('input').value", ...session }),
      ({ isError }) => isError !== true,
    );
    expect(value.structuredContent).toMatchObject({ value: expect.stringContaining("typed by a perso") });
    const { rows } = (await root.get("ledger?tool=operator.browser_input")).json;
    expect(rows.length).toBeGreaterThanOrEqual(4);
    expect((await root.get("ledger?tool=operator.browser_input&text=typed%20by")).json.rows).toEqual([]);
  });
});
