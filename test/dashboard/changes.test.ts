import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, makePlace } from "../e2e/sandbox-client.ts";
import { DashboardServer, HOSTILE, Operator } from "./page-lab.ts";

const NUMBERS = Array.from({ length: 20 }, (_, at) => `line ${at + 1}`);

let server: DashboardServer;
let ada: Client;
let anna: Operator;
let shown = "";

beforeAll(async () => {
  const folder = join(makePlace().folder, "project");
  mkdirSync(folder);
  const files = {
    "edited.txt": `${NUMBERS.join("\n")}\n`,
    "gone.txt": `${HOSTILE}\nthe last words\n`,
    "kept.txt": "as it was\n",
    "ends.txt": "one\r\ntwo\r\n",
    "large.txt": "x".repeat(70_000),
    "lines.txt": "",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, "picture.bin"), Buffer.from([0, 1, 2]));
  server = await new DashboardServer({ sandbox: { volumes: [folder] } }).start();
  ada = await server.client("ada");
  anna = await Operator.signIn(server, { name: "anna" });
});
// Each for itself: what one complains about must not leave the other behind.
afterAll(() => server.stop());
afterAll(() => anna.leave());

const run = (command: string): Promise<unknown> => call(ada, "shell_exec", { command });
const diffOf = (path: string): Locator => anna.page.getByRole("group", { name: `Changes of ${path}` });
const change = (path: string): Locator => anna.page.locator("details.change").filter({ hasText: path });

/** Lines as they stand there, with what each is shown as. */
async function linesOf(path: string): Promise<readonly (readonly [string, string])[]> {
  const spans = await diffOf(path).locator("span").all();
  return Promise.all(
    spans.map(
      async (span) => [(await span.getAttribute("class")) ?? "", ((await span.textContent()) ?? "").trimEnd()] as const,
    ),
  );
}

test("a mounted folder has its changes shown line by line, against what was in it when the sandbox began", async () => {
  await call(ada, "sandbox_create");
  await anna.open("");
  shown = await anna.page.getByRole("link", { name: /^owl-/ }).innerText();
  await anna.open(`/sandboxes/${shown}/changes`);
  await anna.shows("No file is other than when the sandbox began.");
  await run(
    `sed -i 's/^line 10$/line ten/; 15d' edited.txt; rm gone.txt; touch kept.txt; printf 'one\\ntwo\\n' > ends.txt; echo fresh > new.txt; : > nothing.txt`,
  );
  await anna.page.reload();
  await anna.shows("5 files changed");
  expect(await linesOf("edited.txt")).toEqual([
    ["gap", "… 6 lines as before"],
    ...[7, 8, 9].map((at) => ["same", `  line ${at}`]),
    ["out", "- line 10"],
    ["in", "+ line ten"],
    ...[11, 12, 13, 14].map((at) => ["same", `  line ${at}`]),
    ["out", "- line 15"],
    ...[16, 17, 18].map((at) => ["same", `  line ${at}`]),
    ["gap", "… 2 lines as before"],
  ]);
  expect(await linesOf("gone.txt")).toEqual([
    ["out", `- ${HOSTILE}`],
    ["out", "- the last words"],
  ]);
  expect(await linesOf("new.txt")).toEqual([["in", "+ fresh"]]);
  await change("ends.txt").getByText("No line is other; ends of lines may be.").waitFor();
  await change("nothing.txt").getByText("It is empty.").waitFor();
  expect(await change("kept.txt").count()).toBe(0);
  expect(await anna.isOwned()).toBe(false);
  expect(await anna.obstacles()).toEqual([]);
});

test("what was not kept is said in words, and a file of nothing but lines is cut", async () => {
  await run("echo small > large.txt; rm picture.bin; yes '' | head -c 60000 > lines.txt");
  await anna.open(`/sandboxes/${shown}/changes`);
  await anna.shows("8 files changed");
  await change("large.txt").getByText("It was too large to have been kept.").waitFor();
  await change("large.txt").getByRole("group", { name: "Content of large.txt" }).getByText("small").waitFor();
  await change("picture.bin").locator("summary").click();
  await change("picture.bin").getByText("It was no text.").waitFor();
  const lines = diffOf("lines.txt").locator("span");
  await lines.last().getByText("59,000 more lines are not shown").waitFor();
  expect(await lines.count()).toBe(1001);
  await change("lines.txt").locator("summary").click();
  await diffOf("lines.txt").waitFor({ state: "detached" });
  anna.isContent();
});
