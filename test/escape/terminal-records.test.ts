import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { until } from "../integration/harness.ts";
import { AUTH, PageOperator, token } from "./dashboard-lab.ts";

/** Ways to run something in an operator's terminal: each must leave a row in the ledger. */
let server: Server;
let client: Client;
let root: PageOperator;
let name: string;

beforeAll(async () => {
  server = new Server(makePlace(), AUTH);
  const { origin } = new URL(await server.url());
  client = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token("ada")}` });
  root = await PageOperator.byToken(origin, "root");
  await call(client, "sandbox_create");
  name = (await root.get("now")).json.sandboxes[0].id;
  await root.post(`sandboxes/${name}/takeover`);
});

afterAll(async () => {
  await client.close();
  await server.stop();
});

async function type(input: string): Promise<void> {
  expect((await root.post(`sandboxes/${name}/terminal`, { input })).status).toBe(200);
}

async function recorded(): Promise<string> {
  return (await root.get("ledger/export?format=jsonl&kind=admin")).text;
}

async function hasFile(path: string): Promise<boolean> {
  return (await root.get(`sandboxes/${name}/text?path=${path}`)).status === 200;
}

test.each([
  ["Enter", "\r"],
  ["Ctrl-J", "\n"],
  ["Ctrl-O", "\u000f"],
])("a line that %s runs is in the ledger", async (key, end) => {
  const file = `made-by-${key.toLowerCase()}`;
  for (const character of `touch ${file}`) await type(character);
  await type(end);
  await until(
    () => hasFile(file),
    (found) => found,
  );
  expect(await recorded()).toContain(`touch ${file}`);
});

test("a command that one ordinary key runs is in the ledger", async () => {
  await type(`bash\rbind -x '"%": touch by-key'\r`);
  await type("%");
  await until(
    () => hasFile("by-key"),
    (found) => found,
  );
  expect(await until(recorded, (rows) => /"line":"%/.test(rows))).toContain("by-key");
});

test("of a line that is longer than a row nothing is missing, and what was left unfinished is recorded at the end", async () => {
  await type(`: first-part ${"x".repeat(5000)} last-part`);
  expect(await recorded()).toContain("first-part");
  await root.post(`sandboxes/${name}/giveback`);
  expect(await recorded()).toContain("last-part");
  await root.post(`sandboxes/${name}/takeover`);
});
