import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { call, headersOf, newFolder, startGoverned, token } from "../integration/governance-lab.ts";
import { until } from "../integration/harness.ts";
import { BOTH } from "../integration/http-client.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";

/** Clients that hang up during the dear part of each call, or make many at once, to have more than they pay for. */
let server: Awaited<ReturnType<typeof startGoverned>>;

const LONG_MS = 60_000;
const PLACES = { monthlyBudget: 11, concurrency: 2 };

beforeAll(async () => {
  const clients = {
    "places-node": PLACES,
    "places-python": PLACES,
    brief: { concurrency: 1 },
    many: { monthlyBudget: 10 },
  };
  const tools = { node_brief: { cost: { perSecond: 5 } } };
  const governance = { defaults: { monthlyBudget: 20 }, clients, tools };
  server = await startGoverned({ governance, handlers: "running-on", hasAuth: true });
}, LONG_MS);

afterAll(() => server.stop());

/** One client and the requests that its calls make. */
class Client {
  readonly folder: string = newFolder();
  readonly id: string;
  readonly token: string;

  constructor(id: string, bearer: string) {
    this.id = id;
    this.token = bearer;
  }

  static async named(id: string): Promise<Client> {
    return new Client(id, await token(id));
  }

  call(tool: string, name: string): ReturnType<typeof call> {
    return call(server.url, tool, { folder: this.folder, name }, this);
  }

  /** Calls, and hangs up when the handler is at it. */
  async hangUp(tool: string, name: string): Promise<void> {
    const leave = new AbortController();
    const params = { name: tool, arguments: { folder: this.folder, name } };
    const answer = fetch(server.url, {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: name, method: "tools/call", params }),
      headers: { "content-type": "application/json", accept: BOTH, ...headersOf(this) },
      signal: leave.signal,
    }).catch(() => undefined);
    await this.begun(name);
    leave.abort();
    await answer;
  }

  async begun(name: string): Promise<void> {
    await until(
      () => existsSync(path.join(this.folder, `${name}.begun`)),
      (isThere) => isThere,
    );
  }

  end(name: string): void {
    writeFileSync(path.join(this.folder, `${name}.end`), "");
  }
}

interface Row {
  readonly outcome: string;
  readonly cost: number;
  readonly flags: readonly string[];
}

async function rowsOf({ id }: Client): Promise<readonly Row[]> {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const rows = await reader.list({ principal: id }, { limit: 100, order: "oldest" });
  await reader.close();
  return rows.map((row) => ({
    outcome: row.outcome,
    cost: row.cost_micros / 1_000_000,
    flags: JSON.parse(row.flags),
  }));
}

async function statsOf({ id }: Client) {
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const { total } = await reader.stats({ principal: id });
  await reader.close();
  return total;
}

function rowsAtLast(client: Client, count: number): Promise<readonly Row[]> {
  return until(
    () => rowsOf(client),
    (found) => found.length >= count,
  );
}

/** On a busy machine an end may come after the first record. */
async function rowThatCost(client: Client): Promise<Row | undefined> {
  const rows = await until(
    () => rowsOf(client),
    (found) => found.some(({ cost }) => cost > 0),
  );
  return rows.at(-1);
}

describe.each(["node", "python"])("%s: who hangs up during a request that costs", (language) => {
  const tool = `${language}_careless`;

  test("pays what it costs in the end", { timeout: LONG_MS }, async () => {
    const client = await Client.named(`pays-${language}`);
    await client.hangUp(tool, "a");
    expect(await rowsAtLast(client, 1)).toEqual([{ outcome: "cancelled", cost: 0, flags: ["runs_on"] }]);
    client.end("a");
    expect(await rowsAtLast(client, 2)).toEqual([
      { outcome: "cancelled", cost: 0, flags: ["runs_on"] },
      { outcome: "cancelled", cost: 4, flags: ["ran_on"] },
    ]);
    expect(await statsOf(client)).toMatchObject({ calls: 1, failed: 1, costMicros: 4_000_000 });
    client.end("b");
    const { body } = await client.call(tool, "b");
    expect(body.result?.["_meta"]["owlclaw/quota"].budget).toMatchObject({ limit: 20, remaining: 12 });
  });

  test("has no other in its place, nor its money, before the request has ended", { timeout: LONG_MS }, async () => {
    const client = await Client.named(`places-${language}`);
    await client.hangUp(tool, "a");
    await client.hangUp(tool, "b");
    await rowsAtLast(client, 2);
    expect((await client.call(tool, "c")).body.error?.data).toMatchObject({
      rule: `clients.${client.id}.concurrency`,
      used: 2,
    });
    client.end("a");
    await rowsAtLast(client, 4);
    // One place is free; of the money, 4 is spent and 4 is set aside.
    expect((await client.call(tool, "c")).body.error?.data).toMatchObject({
      rule: `clients.${client.id}.monthlyBudget`,
      used: 8,
    });
    expect(existsSync(path.join(client.folder, "c.begun"))).toBe(false);
    client.end("b");
    await rowsAtLast(client, 6);
  });
});

test("a time that is too short frees no place before the work has ended", { timeout: LONG_MS }, async () => {
  const client = await Client.named("brief");
  expect((await client.call("node_brief", "a")).body.error?.data).toMatchObject({ kind: "timeout" });
  expect((await client.call("node_brief", "a")).body.error?.data).toMatchObject({ rule: "clients.brief.concurrency" });
  client.end("a");
  expect(await rowsAtLast(client, 3)).toEqual([
    { outcome: "timeout", cost: 0, flags: ["runs_on"] },
    { outcome: "refused", cost: 0, flags: [] },
    // A fifth of a second, however long it really took, and what it charged.
    { outcome: "timeout", cost: 4, flags: ["ran_on"] },
  ]);
});

test.each(["python_sync", "node_blocking"])(
  "%s: what must be stopped by force costs its maximum",
  { timeout: LONG_MS },
  async (tool) => {
    const client = await Client.named(tool);
    await client.hangUp(tool, "a");
    expect(await rowThatCost(client)).toMatchObject({ cost: 4, flags: expect.arrayContaining(["max_cost_charged"]) });
  },
);

test("what stops when it should costs what it charged on its way out", { timeout: LONG_MS }, async () => {
  const client = await Client.named("careful");
  await client.hangUp("python_careful", "a");
  expect(await rowThatCost(client)).toMatchObject({ outcome: "cancelled", cost: 3 });
});

test(
  "many calls at once whose cost nobody knows before pass a budget by no more than one of them does",
  async () => {
    const client = await Client.named("many");
    client.end("first");
    expect((await client.call("node_unpriced", "first")).body.error).toBeUndefined();
    const names = Array.from({ length: 10 }, (_, index) => `many-${index}`);
    const answers = names.map((name) => client.call("node_unpriced", name));
    // Of 6 that are left one takes 4, as the first has cost; another takes the rest.
    await until(
      () => rowsOf(client),
      (rows) => rows.some(({ outcome }) => outcome === "refused"),
    );
    for (const name of names) client.end(name);
    const errors = (await Promise.all(answers)).map(({ body }) => body.error?.data?.["rule"]);
    expect(errors.filter((rule) => rule === undefined)).toHaveLength(2);
    expect(errors.filter((rule) => rule === "clients.many.monthlyBudget")).toHaveLength(8);
  },
  LONG_MS,
);
