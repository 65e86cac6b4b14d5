import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, goto, snapshot } from "../e2e/browser-site.ts";
import { call } from "../e2e/sandbox-client.ts";

/** A frame that cannot be read must not take the time of the whole snapshot. */
let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
});

/** As often as a snapshot reads frames. */
const COUNTS = [2, 25];
const SOURCES = ["file:///", "file:///etc/passwd", "javascript:void 0"];

test.each(SOURCES.flatMap((source) => COUNTS.map((count) => [source, count] as const)))(
  "a frame to %s, %d times, does not keep the rest of the page from being read",
  async (source, count) => {
    await goto(client, "/index.html");
    const content = `<p>before</p>${`<iframe src="${source}"></iframe>`.repeat(count)}<iframe srcdoc="<p>inside</p>"></iframe><p>after</p>`;
    const expression = `document.body.innerHTML = ${JSON.stringify(content)}; new Promise((done) => document.querySelector("[srcdoc]").onload = () => done())`;
    await call(client, "browser_evaluate", { expression });
    const { text } = await snapshot(client);
    const lines = text
      .split("\n")
      .filter((line) => !line.endsWith("frame:") && line !== "  [this frame could not be read]");
    expect(lines).toEqual(["before", "  inside", "after"]);
  },
);
