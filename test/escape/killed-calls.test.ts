import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import Database from "libsql";
import { afterEach, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import type { LedgerRow } from "../../src/governance/ledger/row.ts";
import { until } from "../integration/harness.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { type HttpServerProcess, MANY_CALLS, startHttp } from "./server.ts";

/** A client that ends the server, or waits for its end, must not get work done that has no row and no cost. */
const servers: HttpServerProcess[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

const HANDLER = `
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { defineHandler } from "owlclaw";

const input = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
/** Does its work, tells the client of it, and takes long to end. */
export const work = defineHandler({
  name: "work",
  description: "Works.",
  cost: { fixed: 2, max: 5 },
  timeoutMs: 60_000,
  input,
  async run({ name }, context) {
    appendFileSync(new URL("./ran.txt", import.meta.url), name + "\\n");
    context.progress(1, { message: "the work is done" });
    while (!existsSync(new URL("./" + name + ".end", import.meta.url))) await pause(20);
    return name;
  },
});
/** Ends at once, or a little later. */
export const brief = defineHandler({
  name: "brief",
  description: "Works briefly.",
  cost: { fixed: 1 },
  input,
  async run({ name }) {
    appendFileSync(new URL("./ran.txt", import.meta.url), name + "\\n");
    await pause(name.length % 7);
    return name;
  },
});
`;

interface Lab {
  readonly folder: string;
  readonly data: string;
  readonly config: Readonly<Record<string, unknown>>;
  ran(): readonly string[];
  rows(name: string): Promise<readonly LedgerRow[]>;
}

function makeLab(): Lab {
  const folder = temporaryFolder();
  const data = join(folder, "data");
  const handlers = join(folder, "handlers");
  mkdirSync(handlers);
  writeFileSync(join(handlers, "work.mjs"), HANDLER);
  const ran = join(handlers, "ran.txt");
  return {
    folder,
    data,
    config: {
      sandbox: { root: data, enabled: false },
      handlers: { paths: [join(handlers, "*.mjs")] },
      governance: { defaults: { ...MANY_CALLS, monthlyBudget: 1000 } },
    },
    ran: () => (existsSync(ran) ? readFileSync(ran, "utf8").trim().split("\n") : []),
    async rows(name) {
      const reader = await openReader({ config: ledgerConfig(), dataFolder: data });
      const rows = await reader.list({ name }, { limit: 10_000 });
      const report = await reader.verify({});
      await reader.close();
      expect(report.problems).toEqual([]);
      return rows;
    },
  };
}

async function start({ config }: Lab): Promise<HttpServerProcess> {
  const server = await startHttp({ config });
  servers.push(server);
  return server;
}

async function call(server: HttpServerProcess, name: string, tool = "work"): Promise<unknown> {
  const params = { name: tool, arguments: { name } };
  const answer = await fetch(`${server.origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: name, method: "tools/call", params }),
  });
  return answer.json();
}

async function budgetLeft(server: HttpServerProcess): Promise<number> {
  const { result } = (await call(server, "x", "brief")) as {
    readonly result: {
      readonly _meta: { readonly "owlclaw/quota": { readonly budget: { readonly remaining: number } } };
    };
  };
  return result._meta["owlclaw/quota"].budget.remaining;
}

test("a call that was running when the server was killed has one row, and what it had reserved is paid", async () => {
  const lab = makeLab();
  const first = await start(lab);
  void call(first, "a").catch(() => undefined);
  void call(first, "b").catch(() => undefined);
  await until(lab.ran, (ran) => ran.length === 2);
  first.kill("SIGKILL");
  await first.exited;
  const second = await start(lab);
  expect(await budgetLeft(second)).toBe(1000 - 2 * 5 - 1);
  const rows = await lab.rows("work");
  expect(
    rows
      .map(({ outcome, cost_micros, args }) => ({ outcome, cost_micros, args }))
      .toSorted((a, b) => (a.args < b.args ? -1 : 1)),
  ).toEqual([
    { outcome: "unknown", cost_micros: 5_000_000, args: '{"name":"a"}' },
    { outcome: "unknown", cost_micros: 5_000_000, args: '{"name":"b"}' },
  ]);
  // A further start has nothing left to recover.
  second.kill("SIGKILL");
  await second.exited;
  await start(lab);
  expect(await lab.rows("work")).toHaveLength(2);
});

test("a neighbour that runs already records the calls of a killed server", async () => {
  const lab = makeLab();
  const [first] = [await start(lab), await start(lab)];
  void call(first, "a").catch(() => undefined);
  await until(lab.ran, (ran) => ran.length === 1);
  first.kill("SIGKILL");
  await first.exited;
  const rows = await until(
    () => lab.rows("work"),
    (found) => found.length > 0,
  );
  expect(rows.map(({ outcome }) => outcome)).toEqual(["unknown"]);
});

test("calls that are written among the begun calls without the key are left out", async () => {
  const lab = makeLab();
  const first = await start(lab);
  void call(first, "a").catch(() => undefined);
  await until(lab.ran, (ran) => ran.length === 1);
  first.kill("SIGKILL");
  await first.exited;
  const file = new Database(join(lab.data, "ledger.db"));
  file.exec("INSERT INTO call_starts SELECT call + 8, holds, day, micros, draft, mac FROM call_starts");
  file.exec(
    `INSERT INTO call_starts SELECT call + 1, holds, day, micros, draft, '${"0".repeat(64)}' FROM call_starts LIMIT 1`,
  );
  file.close();
  await start(lab);
  expect(await lab.rows("work")).toHaveLength(1);
});

test("a call does not run when its begin cannot be recorded", async () => {
  const lab = makeLab();
  const server = await start(lab);
  const file = new Database(join(lab.data, "ledger.db"));
  file.exec(
    "CREATE TRIGGER refused BEFORE INSERT ON call_starts BEGIN SELECT RAISE(ABORT, 'no start is recorded'); END",
  );
  expect(await call(server, "a")).toMatchObject({ error: { data: { kind: "store_unavailable" } } });
  expect(lab.ran()).toEqual([]);
  file.exec("DROP TRIGGER refused");
  file.close();
});

const MAIN = new URL("../../dist/main.js", import.meta.url).pathname;

async function connect(lab: Lab): Promise<Client> {
  const file = join(lab.folder, "mcp-server.yaml");
  writeFileSync(file, JSON.stringify(lab.config));
  const client = new Client({ name: "closing", version: "1" });
  const args = [MAIN, "mcp-server", "start", "--transport", "stdio", "--config", file];
  const { PATH = "" } = process.env;
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env: { PATH, HOME: lab.folder } }));
  return client;
}

test("the official client's close() in the middle of a long call leaves its row before the client kills the server", async () => {
  const lab = makeLab();
  const client = await connect(lab);
  const outcome = client.callTool({ name: "work", arguments: { name: "a" } }).catch(() => "ended");
  await until(lab.ran, (ran) => ran.length === 1);
  await client.close();
  await outcome;
  const rows = await lab.rows("work");
  // A second row, which counts as no call, is for work that goes on after its call was stopped.
  expect(rows.filter(({ count }) => count > 0).map(({ outcome: found }) => found)).toEqual(["cancelled"]);
});

const ROUNDS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 10 : 4;

test(
  `the official client's close() at random moments of ${20 * ROUNDS} calls leaves one row for every call that ran`,
  { timeout: 600_000 },
  async () => {
    const lab = makeLab();
    for (let round = 0; round < ROUNDS; round += 1) {
      const client = await connect(lab);
      let answered = 0;
      const closesAfter = Math.floor(Math.random() * 20);
      const calls = Array.from({ length: 20 }, async (_, n) => {
        await client.callTool({ name: "brief", arguments: { name: `${round}-${n}-${"x".repeat(n)}` } });
        answered += 1;
      });
      const all = Promise.allSettled(calls);
      await until(
        () => answered,
        (count) => count >= closesAfter,
      );
      await client.close();
      await all;
    }
    const rows = await lab.rows("brief");
    const recorded = rows.map(({ args }) => (JSON.parse(args) as { readonly name: string }).name);
    expect(new Set(recorded).size).toBe(recorded.length);
    expect(lab.ran().filter((name) => !recorded.includes(name))).toEqual([]);
  },
);
